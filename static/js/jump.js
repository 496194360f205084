// Search and jump: a combobox in a dialog. The server finds; this opens it, and moves the choice.
(() => {
  "use strict";

  const dialog = document.getElementById("jump");
  if (!dialog || !window.htmx) return;
  const field = document.getElementById("jump-query");
  const list = document.getElementById("jump-results");
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  if (isMac) for (const key of document.querySelectorAll("[data-jump-key]")) key.textContent = "⌘K";

  const options = () => [...list.querySelectorAll("[role=option]")];
  const chosen = () => list.querySelector("[aria-selected=true]");

  function choose(option) {
    chosen()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  }

  function open() {
    for (const other of document.querySelectorAll("dialog[open]")) if (other !== dialog) return;
    if (!dialog.open) dialog.showModal();
    field.select();
    htmx.trigger(field, "jump");
  }

  function move(event) {
    const every = options();
    const place = every.indexOf(chosen());
    const next = {
      ArrowDown: (place + 1) % every.length,
      ArrowUp: (place - 1 + every.length) % every.length,
      PageDown: Math.min(place + 5, every.length - 1),
      PageUp: Math.max(place - 5, 0),
    }[event.key];
    if (next !== undefined) choose(every[next]);
    else if (event.key === "Enter" && !event.isComposing) chosen()?.click();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey) return;
    if (!(isMac ? event.metaKey : event.ctrlKey)) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("click", (event) => {
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (isPlain && event.target.closest("[data-jump]")) {
      event.preventDefault();
      open();
    }
  });
  field.addEventListener("keydown", move);
  list.addEventListener("htmx:afterSwap", () => {
    field.setAttribute("aria-expanded", String(options().length > 0));
    choose(options()[0]);
  });
})();
