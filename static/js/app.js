// Enhancements of the pages: theme, copy buttons, confirmations, notices, keyboard shortcuts, and the focus after a
// response. Without this file, or without htmx, each control is a plain form.
(() => {
  "use strict";

  const root = document.documentElement;
  if (!window.htmx) {
    root.classList.remove("js");
    return;
  }

  const storage = {
    get(key) {
      try {
        return localStorage.getItem(key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        if (value === null) localStorage.removeItem(key);
        else localStorage.setItem(key, value);
      } catch {
        // Without storage, the value applies to this page only.
      }
    },
  };
  const queryAll = (selector, within = document) => [...within.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // The theme. All its controls on a page show the same choice.
  function showTheme() {
    const theme = root.dataset.theme ?? "system";
    for (const radio of queryAll("[data-theme-choice] input")) radio.checked = radio.value === theme;
  }

  function chooseTheme(theme) {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    storage.set("toolbelt:theme", theme === "system" ? null : theme);
    showTheme();
  }

  // Set the controls from the field `was` in the response. An override shows what is stored, unless the operator has
  // chosen another state that is not sent yet. A switch shows the effective state.
  const unsent = new WeakSet();

  function syncControl(form) {
    const was = form.elements.was;
    if (form.dataset.control === "switch") syncSwitch(form, was);
    else if (!unsent.has(form)) syncOverride(form, was.value);
  }

  function syncSwitch(form, was) {
    const { shown, wants, else: other, label } = was.dataset;
    const button = form.querySelector("[role=switch]");
    button.dataset.stored = was.value;
    button.dataset.shown = shown;
    button.value = wants;
    button.setAttribute("aria-checked", String(shown !== "off"));
    const link = form.querySelector("[data-other]");
    if (!link) return;
    link.value = other;
    link.firstElementChild.textContent = was.value === "unset" ? label : link.dataset.whenSet;
  }

  function syncOverride(form, was) {
    form.querySelector("[data-inherits]").textContent = form.elements.was.dataset.inherits;
    const stored = queryAll("[type=radio]", form).find((radio) => radio.value === was);
    const hasFocus = document.activeElement?.type === "radio" && form.contains(document.activeElement);
    stored.checked = true;
    if (hasFocus) stored.focus({ preventScroll: true });
  }

  // Confirmations, which the server renders.
  function openConfirmation() {
    const dialog = byId("dialog")?.querySelector("dialog:not([open])");
    if (!dialog) return;
    dialog.addEventListener("close", () => dialog.remove());
    for (const menu of queryAll("details.acts[open]")) menu.open = false;
    dialog.showModal();
  }

  // Notices and the live region.
  function notify(templateId, request = "", reason = "") {
    const content = byId(templateId).content.cloneNode(true);
    for (const element of queryAll("[data-reason]", content)) element.textContent = reason;
    for (const element of queryAll("[data-request]", content)) element.textContent = request;
    byId("live").textContent = content.querySelector("p").textContent;
    byId("toast").replaceChildren(content);
  }

  let lastControl = null;

  function dismissNotice() {
    byId("toast").replaceChildren();
    (lastControl?.isConnected ? lastControl : byId("main")).focus({ preventScroll: true });
  }

  // Copy the text, or select it if there is no clipboard, as on a page over plain HTTP. Return what was done.
  async function copyOrSelect(text, source) {
    try {
      await navigator.clipboard.writeText(text);
      return "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      return "Selected";
    }
  }

  // Remove the message after two seconds, from the screen and from the live region.
  let fadeTimer = 0;

  function announceBriefly(message, after) {
    clearTimeout(fadeTimer);
    byId("live").textContent = message;
    fadeTimer = setTimeout(() => {
      after();
      if (byId("live").textContent === message) byId("live").textContent = "";
    }, 2000);
  }

  // Copy, and show the result in the button.
  async function copy(button) {
    const source = byId(button.dataset.copies);
    const label = button.querySelector("[data-copy-word]");
    const word = await copyOrSelect(source.textContent, source);
    for (const other of queryAll("[data-copy-word]")) other.textContent = "Copy";
    label.textContent = word;
    announceBriefly(word, () => (label.textContent = "Copy"));
  }

  // Copy a key or an id. Its button has no text, so a check mark shows the result.
  async function copyKey(button) {
    const key = button.dataset.copy;
    const word = await copyOrSelect(key, button.previousElementSibling);
    for (const other of queryAll("[data-copied]")) delete other.dataset.copied;
    button.dataset.copied = "";
    announceBriefly(`${word} ${key}`, () => delete button.dataset.copied);
  }

  // Whether a request changes something: one that asks what a form would have done sends it only to be read.
  htmx.isChange = ({ verb, elt }) => verb !== "get" && !("proof" in elt.dataset);

  // Add to each request which parts this page shows, so that the response contains them.
  document.addEventListener("htmx:configRequest", ({ target, detail }) => {
    unsent.delete(target);
    if (!htmx.isChange(detail)) return;
    (target.closest("[popover]") ?? target.querySelector("[popover]:popover-open"))?.hidePopover();
    lastControl = target.contains(document.activeElement) ? document.activeElement : lastControl;
    byId("live").textContent = "";
    detail.parameters.tools = [...new Set(queryAll("[data-tool]").map((part) => part.dataset.tool))].join(" ");
    const message = byId("try-message");
    if (message) detail.parameters.message = message.value;
    detail.parameters.sections = queryAll("[data-section]").map((part) => part.dataset.section).join(" ");
    detail.parameters.cells = [...new Set(queryAll("[data-cell]").map((part) => part.dataset.cell))].join(" ");
  });

  // Before a swap, remember the focus. Close an open dialog before it is removed: only then does the browser restore
  // the focus.
  let focused = { element: null, container: null };

  document.addEventListener("htmx:beforeSwap", ({ target, detail }) => {
    // Send a chosen state before its form is replaced. Then order.js keeps the form.
    for (const form of detail.requestConfig.verb === "get" ? queryAll("form[data-control=override]", target) : []) {
      if (unsent.has(form)) htmx.trigger(form, "submit");
    }
    const element = document.activeElement;
    focused = { element, container: element?.closest('[tabindex="-1"]') };
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ target }) => {
    if (target.id === "dialog") target.querySelector("dialog[open]")?.close();
  });

  document.addEventListener("htmx:afterRequest", () => {
    queryAll("form[data-control]").forEach(syncControl);
    openConfirmation();
    if (document.activeElement === document.body && focused.element && !focused.element.isConnected) {
      (focused.container?.isConnected ? focused.container : byId("main")).focus({ preventScroll: true });
    }
  });

  // A notice is about the last change: the next change removes it, even if it has no notice itself.
  let previousNotice = null;

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (htmx.isChange(detail.requestConfig)) previousNotice = byId("toast")?.firstElementChild;
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!htmx.isChange(detail.requestConfig) || !detail.successful || !previousNotice) return;
    const isShown = byId("toast").firstElementChild === previousNotice;
    if (isShown && !previousNotice.contains(document.activeElement)) previousNotice.remove();
    previousNotice = null;
  });

  // The server rejected the form and returned it: scroll to the error, which may be far from the button.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (![409, 422].includes(detail.xhr.status)) return;
    const form = byId("editor");
    const field = form?.querySelector('[aria-invalid="true"]');
    (field ?? form?.querySelector('[role="alert"]'))?.scrollIntoView({ block: "center" });
    field?.focus({ preventScroll: true });
  });

  // Show the target of a link in a popover beside the link. A menu that fetched its own contents is open already.
  document.addEventListener("htmx:afterSwap", ({ detail: { target, requestConfig } }) => {
    if (!target.matches("[popover]") || target === requestConfig.elt) return;
    // A form in it, which this has replaced: it stays where it is, as far as it fits.
    const isMoved = requestConfig.elt.isConnected;
    const box = (isMoved ? requestConfig.elt : target).getBoundingClientRect();
    if (isMoved) target.showPopover();
    if (innerWidth < 640) return;
    const top = isMoved ? box.bottom + 4 : box.top;
    target.style.margin = 0;
    target.style.left = `${Math.max(8, Math.min(box.left, innerWidth - target.offsetWidth - 16))}px`;
    target.style.top = `${Math.max(8, Math.min(top, innerHeight - target.offsetHeight - 16))}px`;
  });

  // patch.js has applied changes by other operators.
  document.addEventListener("toolbelt:patched", () => queryAll("form[data-control]").forEach(syncControl));

  for (const event of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(event, () => notify("not-reached"));
  }
  const TEMPLATES_BY_STATUS = {
    403: "not-yours",
    429: "too-often",
    502: "not-reached",
    503: "not-reached",
    504: "not-reached",
  };

  document.addEventListener("htmx:responseError", ({ detail }) => {
    const status = detail.xhr.status;
    const requestId = detail.xhr.getResponseHeader("X-Request-ID") ?? "";
    if (detail.xhr.getResponseHeader("Toolbelt-Unavailable")) notify("unavailable", requestId, detail.xhr.responseText);
    else notify(TEMPLATES_BY_STATUS[status] ?? (status >= 500 ? "went-wrong" : "not-done"), requestId);
  });

  // The event `opened`, which loads parts when they are opened: `toggle` is also sent when they are closed.
  document.addEventListener(
    "toggle",
    ({ target, newState }) => {
      if (newState === "open") target.dispatchEvent(new Event("opened"));
    },
    true,
  );

  // Show a notice if a change takes long, until the response arrives.
  const SLOW_AFTER = 4000;
  let slowTimer = null;

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!htmx.isChange(detail.requestConfig)) return;
    clearTimeout(slowTimer);
    slowTimer = setTimeout(() => notify("too-slow"), SLOW_AFTER);
  });

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!htmx.isChange(detail.requestConfig)) return;
    clearTimeout(slowTimer);
    document.querySelector("[data-waiting]")?.remove();
  });

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-theme-choice] input")) chooseTheme(target.value);
    else if (target.matches("[data-shortcuts]")) storage.set("toolbelt:shortcuts", target.checked ? null : "off");
    else if (target.form?.dataset.control === "override") unsent.add(target.form);
  });

  // Ignore the second click of a double click: it would undo the first.
  document.addEventListener(
    "click",
    (event) => {
      if (event.detail > 1 && event.target.closest("[data-control] button")) {
        event.preventDefault();
        event.stopPropagation();
      }
    },
    true,
  );

  // Do not submit a form twice while its page loads. If no page arrives, allow it again.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if ("sent" in form.dataset) event.preventDefault();
    form.dataset.sent = "";
    setTimeout(() => delete form.dataset.sent, SLOW_AFTER);
  });
  addEventListener("pageshow", () => {
    for (const form of queryAll("[data-sent]")) delete form.dataset.sent;
  });

  // Ask before unsaved changes in an editor are lost. Changes that were just sent are saved.
  let isSaved = false;
  document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    isSaved ||= detail.requestConfig.verb === "post" && detail.xhr.getResponseHeader("HX-Redirect") !== null;
  });
  addEventListener("beforeunload", (event) => {
    if (isSaved || document.querySelector("form[data-sent]")) return;
    // If the page is left before all scripts have run, it has no unsaved changes.
    if (queryAll("form[data-guarded]").some((form) => window.toolbelt?.isUnsaved(form))) event.preventDefault();
  });

  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-dismiss]")) dismissNotice();
    for (const menu of queryAll("details.acts[open], details.you[open]")) menu.open = menu.contains(target);
    const copyButton = target.closest("[data-copies]");
    if (copyButton) copy(copyButton);
    const keyButton = target.closest("[data-copy]");
    if (keyButton) copyKey(keyButton);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" && event.key !== "?") return;
    if (event.ctrlKey || event.metaKey || event.altKey || storage.get("toolbelt:shortcuts") === "off") return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea, dialog")) return;
    const filter = document.querySelector("[data-filter]");
    if (event.key === "/" && filter) {
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if (event.key === "?" && byId("shortcuts")) {
      event.preventDefault();
      byId("shortcuts").showModal();
    }
  });

  // In a low window, the link to the current page may be out of view. Scroll the links, not the page.
  const currentLink = document.querySelector(".frame-wide > .menu-links [aria-current]");
  if (currentLink) {
    const links = currentLink.parentElement;
    const overflow = currentLink.getBoundingClientRect().bottom - links.getBoundingClientRect().bottom;
    links.scrollTop += Math.max(0, overflow + 4);
  }
  showTheme();
  for (const checkbox of queryAll("[data-shortcuts]")) checkbox.checked = storage.get("toolbelt:shortcuts") !== "off";
  openConfirmation();
})();
