// The keys and links that open the search dialog, which contains a combobox (combobox.js).
(() => {
  "use strict";

  const dialog = document.getElementById("jump");
  if (!dialog || !window.htmx) return;
  const field = document.getElementById("jump-query");
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  if (isMac) for (const key of document.querySelectorAll("[data-jump-key]")) key.textContent = "⌘K";

  function open() {
    for (const other of document.querySelectorAll("dialog[open]")) if (other !== dialog) return;
    if (!dialog.open) dialog.showModal();
    field.select();
    htmx.trigger(field, "jump");
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
})();
