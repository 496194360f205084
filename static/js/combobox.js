// Comboboxes (ARIA 1.2): the field keeps the focus, the arrow keys select an option, and Enter activates it. The server
// finds the options. With data-adds, which is the id of a button, an option is written into the field and the button is
// clicked. Enter on text that has no options yet also clicks it, and the server interprets the text.
(() => {
  "use strict";

  if (!window.htmx) return;
  const listOf = (field) => document.getElementById(field.getAttribute("aria-controls"));
  const fieldOf = (list) => list.id && document.querySelector(`[role=combobox][aria-controls="${list.id}"]`);
  const optionsOf = (list) => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];
  const selectedOf = (list) => list.querySelector("[aria-selected=true]");

  function select(field, option) {
    selectedOf(listOf(field))?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function setOpen(field, isOpen) {
    if (field.dataset.adds) listOf(field).hidden = !isOpen;
    field.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) select(field, null);
  }

  function addOption(field, option) {
    if (!("typed" in option.dataset)) field.value = option.dataset.value;
    setOpen(field, false);
    document.getElementById(field.dataset.adds).click();
  }

  // Return whether the combobox used the key.
  function handleKey(field, key) {
    const all = optionsOf(listOf(field));
    const index = all.indexOf(selectedOf(listOf(field)));
    const isClosed = field.getAttribute("aria-expanded") !== "true";
    if (key === "Enter") {
      const isCurrent = !field.dataset.adds || listOf(field).dataset.of === field.value;
      if (!isClosed && isCurrent) selectedOf(listOf(field))?.click();
      else if (field.dataset.adds && field.value.trim()) document.getElementById(field.dataset.adds).click();
      return true;
    }
    if (key === "Escape" && field.dataset.adds) {
      if (isClosed) field.value = "";
      setOpen(field, false);
      return true;
    }
    const next = {
      ArrowDown: (index + 1) % all.length,
      ArrowUp: (index - 1 + all.length) % all.length,
      PageDown: Math.min(index + 5, all.length - 1),
      PageUp: Math.max(index - 5, 0),
    }[key];
    if (next === undefined) return false;
    if (isClosed) setOpen(field, all.length > 0);
    select(field, all[next]);
    return true;
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("[role=combobox]");
    if (!field || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (handleKey(field, event.key)) event.preventDefault();
  });

  // Keep the focus in the field while an option is clicked.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("[data-value][role=option]")) event.preventDefault();
  });
  document.addEventListener("click", ({ target }) => {
    const option = target.closest("[data-value][role=option]");
    if (option) addOption(fieldOf(option.parentElement), option);
  });
  document.addEventListener("focusout", ({ target }) => {
    if (target.dataset?.adds) setOpen(target, false);
  });

  document.addEventListener("htmx:configRequest", ({ target, detail }) => {
    if (target.dataset.adds) detail.parameters.q = target.value;
  });
  document.addEventListener("htmx:afterSwap", ({ detail: { target: list, requestConfig } }) => {
    const field = fieldOf(list);
    if (!field) return;
    if (field.dataset.adds) {
      const added = new Set([...field.form.querySelectorAll("input[type=hidden]")].map((input) => input.value));
      for (const option of optionsOf(list)) if (added.has(option.dataset.value)) option.remove();
      list.dataset.of = requestConfig.parameters.q;
      const addAll = list.querySelector("[data-all]");
      const remaining = optionsOf(list).filter((option) => option !== addAll);
      if (remaining.length < 2) addAll?.remove();
      else if (addAll) {
        addAll.dataset.value = remaining.map((option) => option.dataset.value).join(" ");
        addAll.textContent = `Add all ${remaining.length}`;
      }
      setOpen(field, list.children.length > 0 && document.activeElement === field);
    } else setOpen(field, optionsOf(list).length > 0);
    select(field, optionsOf(list)[0]);
  });
})();
