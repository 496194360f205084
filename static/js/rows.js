// Keys for lists of rows: j and k move between the rows of a [data-rows], and a letter presses what has it as its
// data-key in the current row. Without a row in focus, the first one is current.
(() => {
  "use strict";

  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  const list = () => every("[data-rows]").find((found) => found.checkVisibility());
  const rows = () => every("[data-row]", list()).filter((row) => row.checkVisibility());
  // A row that takes the focus itself keeps it while its controls are pressed.
  const handle = (row) => (row.hasAttribute("tabindex") ? row : row.querySelector("summary, a, button"));
  const isOff = () => {
    try {
      return localStorage.getItem("toolbelt:shortcuts") === "off";
    } catch {
      return false;
    }
  };

  function current() {
    return rows().findLastIndex((row) => row.contains(document.activeElement));
  }

  function go(place) {
    const row = rows().at(place);
    if (!row) return;
    handle(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  function press(key) {
    const row = rows()[Math.max(0, current())];
    const control = row?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!control) return false;
    if (handle(row) !== row) control.focus({ preventScroll: true });
    control.click();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (!list() || isOff() || event.ctrlKey || event.metaKey || event.altKey || event.key.length > 1) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea, dialog")) return;
    // The space bar is for the row that has the focus: a control in it uses the key itself.
    if (event.key === " " && !event.target.matches("[data-row]")) return;
    const last = rows().length - 1;
    if (event.key === "j") go(Math.min(last, current() + 1));
    else if (event.key === "k") go(Math.max(0, current() - 1));
    else if (!press(event.key)) return;
    event.preventDefault();
  });

  // A [data-ticks] ticks all checkboxes of that name in its form; with shift, a checkbox ticks those up to the last one.
  let ticked;
  document.addEventListener("click", ({ target, shiftKey }) => {
    if (!target.matches("input[type=checkbox]")) return;
    const name = CSS.escape(target.dataset.ticks ?? target.name);
    const alike = every(`input[type=checkbox][name="${name}"]`).filter((box) => box.form === target.form);
    const between = [alike.indexOf(ticked), alike.indexOf(target)].sort((one, other) => one - other);
    if (target.dataset.ticks) for (const box of alike) box.checked = target.checked;
    else if (shiftKey && between[0] >= 0)
      for (const box of alike.slice(between[0], between[1])) box.checked = target.checked;
    ticked = target;
  });

  // What was decided leaves the list: the row that takes its place is the next one. It gets the focus when htmx listens
  // to it, because a key pressed earlier would send its form as HTML.
  let place = -1;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    place = detail.elt.querySelector("[data-rows]") ? current() : -1;
  });
  document.addEventListener("htmx:load", ({ target }) => {
    if (place < 0 || !target.querySelector("[data-rows]")) return;
    go(Math.min(place, rows().length - 1));
    place = -1;
  });
})();
