// Comboboxes (ARIA 1.2): the field keeps the focus, the arrow keys choose an option, Enter takes it. The server finds
// the options. With data-adds, the id of a button, an option is put into the field and the button pressed; Enter on text
// that has no options yet presses it too, and the server decides what the text means.
(() => {
  "use strict";

  if (!window.htmx) return;
  const listOf = (field) => document.getElementById(field.getAttribute("aria-controls"));
  const fieldOf = (list) => list.id && document.querySelector(`[role=combobox][aria-controls="${list.id}"]`);
  const options = (list) => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];
  const chosen = (list) => list.querySelector("[aria-selected=true]");

  function choose(field, option) {
    chosen(listOf(field))?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function show(field, isOpen) {
    if (field.dataset.adds) listOf(field).hidden = !isOpen;
    field.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) choose(field, null);
  }

  function add(field, option) {
    if (!("typed" in option.dataset)) field.value = option.dataset.value;
    show(field, false);
    document.getElementById(field.dataset.adds).click();
  }

  // Returns whether the key was for the combobox.
  function press(field, key) {
    const every = options(listOf(field));
    const place = every.indexOf(chosen(listOf(field)));
    const isClosed = field.getAttribute("aria-expanded") !== "true";
    if (key === "Enter") {
      const isAnswered = !field.dataset.adds || listOf(field).dataset.of === field.value;
      if (!isClosed && isAnswered) chosen(listOf(field))?.click();
      else if (field.dataset.adds && field.value.trim()) document.getElementById(field.dataset.adds).click();
      return true;
    }
    if (key === "Escape" && field.dataset.adds) {
      if (isClosed) field.value = "";
      show(field, false);
      return true;
    }
    const next = {
      ArrowDown: (place + 1) % every.length,
      ArrowUp: (place - 1 + every.length) % every.length,
      PageDown: Math.min(place + 5, every.length - 1),
      PageUp: Math.max(place - 5, 0),
    }[key];
    if (next === undefined) return false;
    if (isClosed) show(field, every.length > 0);
    choose(field, every[next]);
    return true;
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("[role=combobox]");
    if (!field || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (press(field, event.key)) event.preventDefault();
  });

  // The focus stays in the field while an option is pressed.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("[data-value][role=option]")) event.preventDefault();
  });
  document.addEventListener("click", ({ target }) => {
    const option = target.closest("[data-value][role=option]");
    if (option) add(fieldOf(option.parentElement), option);
  });
  document.addEventListener("focusout", ({ target }) => {
    if (target.dataset?.adds) show(target, false);
  });

  document.addEventListener("htmx:configRequest", ({ target, detail }) => {
    if (target.dataset.adds) detail.parameters.q = target.value;
  });
  document.addEventListener("htmx:afterSwap", ({ detail: { target: list, requestConfig } }) => {
    const field = fieldOf(list);
    if (!field) return;
    if (field.dataset.adds) {
      const added = new Set([...field.form.querySelectorAll("input[type=hidden]")].map((input) => input.value));
      for (const option of options(list)) if (added.has(option.dataset.value)) option.remove();
      list.dataset.of = requestConfig.parameters.q;
      const all = list.querySelector("[data-all]");
      const left = options(list).filter((option) => option !== all);
      if (left.length < 2) all?.remove();
      else if (all) {
        all.dataset.value = left.map((option) => option.dataset.value).join(" ");
        all.textContent = `Add all ${left.length}`;
      }
      show(field, list.children.length > 0 && document.activeElement === field);
    } else show(field, options(list).length > 0);
    choose(field, options(list)[0]);
  });
})();
