// Keys for lists of rows: j and k move between the rows of a [data-rows], and a letter clicks the control that has it
// as its data-key in the current row. If no row has the focus, the first is current.
(() => {
  "use strict";

  const queryAll = (selector, within = document) => [...within.querySelectorAll(selector)];
  const visibleList = () => queryAll("[data-rows]").find((element) => element.checkVisibility());
  const rows = () => queryAll("[data-row]", visibleList()).filter((row) => row.checkVisibility());
  // A row that can have the focus itself keeps it while its controls are clicked.
  const focusTarget = (row) => (row.hasAttribute("tabindex") ? row : row.querySelector("summary, a, button"));
  const isOff = () => {
    try {
      return localStorage.getItem("toolbelt:shortcuts") === "off";
    } catch {
      return false;
    }
  };

  function currentIndex() {
    return rows().findLastIndex((row) => row.contains(document.activeElement));
  }

  function focusRow(index) {
    const row = rows().at(index);
    if (!row) return;
    focusTarget(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function clickControl(key) {
    const row = rows()[Math.max(0, currentIndex())];
    const control = row?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!control) return false;
    if (focusTarget(row) !== row) control.focus({ preventScroll: true });
    control.click();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (!visibleList() || isOff() || event.ctrlKey || event.metaKey || event.altKey || event.key.length > 1) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea, dialog")) return;
    // The space bar applies to a row that has the focus. A control in the row uses the key itself.
    if (event.key === " " && !event.target.matches("[data-row]")) return;
    const last = rows().length - 1;
    if (event.key === "j") focusRow(Math.min(last, currentIndex() + 1));
    else if (event.key === "k") focusRow(Math.max(0, currentIndex() - 1));
    else if (!clickControl(event.key)) return;
    event.preventDefault();
  });

  // A [data-ticks] sets all checkboxes of that name in its form. A click with Shift sets all from the last one clicked.
  let lastClicked;
  document.addEventListener("click", ({ target, shiftKey }) => {
    if (!target.matches("input[type=checkbox]")) return;
    const name = CSS.escape(target.dataset.ticks ?? target.name);
    const group = queryAll(`input[type=checkbox][name="${name}"]`).filter((box) => box.form === target.form);
    const range = [group.indexOf(lastClicked), group.indexOf(target)].sort((a, b) => a - b);
    if (target.dataset.ticks) for (const box of group) box.checked = target.checked;
    else if (shiftKey && range[0] >= 0)
      for (const box of group.slice(range[0], range[1])) box.checked = target.checked;
    lastClicked = target;
  });

  // A row leaves the list once it is decided: focus the row that takes its place. Wait until htmx has processed the new
  // rows, because a key pressed earlier would submit the form without htmx.
  let index = -1;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    const isDeciding = detail.elt.querySelector("[data-rows]") || detail.elt.closest("[data-rows=leaving]");
    index = isDeciding ? currentIndex() : -1;
  });
  document.addEventListener("htmx:load", ({ target }) => {
    if (index < 0 || !(target.matches("[data-rows]") || target.querySelector("[data-rows]"))) return;
    focusRow(Math.min(index, rows().length - 1));
    index = -1;
  });
})();
