// What makes the pages quicker to use than plain forms? Everything here is an addition: without it, or without htmx,
// each control is a form that posts and comes back.
(() => {
  "use strict";

  const root = document.documentElement;
  if (!window.htmx) {
    root.classList.remove("js");
    return;
  }

  const kept = {
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
        // No storage: it holds for this page only.
      }
    },
  };
  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // Colours: one choice, shown in each place that offers it.
  function showTheme() {
    const theme = root.dataset.theme ?? "system";
    for (const radio of every("[data-theme-choice] input")) radio.checked = radio.value === theme;
  }

  function chooseTheme(theme) {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    kept.set("toolbelt:theme", theme === "system" ? null : theme);
    showTheme();
  }

  // Controls follow the field `was` of a response: overrides show what is stored, unless the operator has just chosen
  // another state that is still to be sent, and switches show what the model has.
  const touched = new WeakSet();

  function follow(form) {
    const was = form.elements.was;
    if (form.dataset.control === "switch") followSwitch(form, was);
    else if (!touched.has(form)) followOverride(form, was.value);
  }

  function followSwitch(form, was) {
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

  function followOverride(form, was) {
    form.querySelector("[data-inherits]").textContent = form.elements.was.dataset.inherits;
    const stored = every("[type=radio]", form).find((radio) => radio.value === was);
    const inUse = document.activeElement?.type === "radio" && form.contains(document.activeElement);
    stored.checked = true;
    if (inUse) stored.focus({ preventScroll: true });
  }

  // Questions from the server.
  function openQuestion() {
    const dialog = byId("dialog")?.querySelector("dialog:not([open])");
    if (!dialog) return;
    dialog.addEventListener("close", () => dialog.remove());
    for (const menu of every("details.acts[open]")) menu.open = false;
    dialog.showModal();
  }

  // Notices and the live region.
  function tell(templateId, request = "", reason = "") {
    const content = byId(templateId).content.cloneNode(true);
    for (const place of every("[data-reason]", content)) place.textContent = reason;
    for (const place of every("[data-request]", content)) place.textContent = request;
    byId("live").textContent = content.querySelector("p").textContent;
    byId("toast").replaceChildren(content);
  }

  let lastControl = null;

  function dismiss() {
    byId("toast").replaceChildren();
    (lastControl?.isConnected ? lastControl : byId("main")).focus({ preventScroll: true });
  }

  // Copies a text, and returns the word for that. A page that came over plain HTTP has no clipboard: then the text is
  // selected where it stands.
  async function put(text, source) {
    try {
      await navigator.clipboard.writeText(text);
      return "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      return "Selected";
    }
  }

  // That something was copied is news for a moment only, on the screen and in the live region.
  let fading = 0;

  function announceBriefly(news, after) {
    clearTimeout(fading);
    byId("live").textContent = news;
    fading = setTimeout(() => {
      after();
      if (byId("live").textContent === news) byId("live").textContent = "";
    }, 2000);
  }

  // A button with a place for the word.
  async function copy(button) {
    const source = byId(button.dataset.copies);
    const place = button.querySelector("[data-copy-word]");
    const word = await put(source.textContent, source);
    for (const other of every("[data-copy-word]")) other.textContent = "Copy";
    place.textContent = word;
    announceBriefly(word, () => (place.textContent = "Copy"));
  }

  // The button beside a key or an id has no place for a word: a check shows that it is copied.
  async function copyKey(button) {
    const key = button.dataset.copy;
    const word = await put(key, button.previousElementSibling);
    for (const other of every("[data-copied]")) delete other.dataset.copied;
    button.dataset.copied = "";
    announceBriefly(`${word} ${key}`, () => delete button.dataset.copied);
  }

  // A request: what it was sent from, and which parts this page would have use for.
  document.addEventListener("htmx:configRequest", ({ target, detail }) => {
    touched.delete(target);
    if (detail.verb === "get") return;
    (target.closest("[popover]") ?? target.querySelector("[popover]:popover-open"))?.hidePopover();
    lastControl = target.contains(document.activeElement) ? document.activeElement : lastControl;
    byId("live").textContent = "";
    detail.parameters.tools = [...new Set(every("[data-tool]").map((part) => part.dataset.tool))].join(" ");
    const tried = byId("try-message");
    if (tried) detail.parameters.message = tried.value;
    detail.parameters.sections = every("[data-section]").map((part) => part.dataset.section).join(" ");
    detail.parameters.cells = [...new Set(every("[data-cell]").map((part) => part.dataset.cell))].join(" ");
  });

  // Its answer. An open dialog is closed before it is taken away: only then the focus returns to where it was.
  let focused = { element: null, place: null };

  document.addEventListener("htmx:beforeSwap", ({ target, detail }) => {
    // A choice is sent before its form is replaced; then the form stays (order.js).
    for (const form of detail.requestConfig.verb === "get" ? every("form[data-control=override]", target) : []) {
      if (touched.has(form)) htmx.trigger(form, "submit");
    }
    const element = document.activeElement;
    focused = { element, place: element?.closest('[tabindex="-1"]') };
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ target }) => {
    if (target.id === "dialog") target.querySelector("dialog[open]")?.close();
  });

  document.addEventListener("htmx:afterRequest", () => {
    every("form[data-control]").forEach(follow);
    openQuestion();
    if (document.activeElement === document.body && focused.element && !focused.element.isConnected) {
      (focused.place?.isConnected ? focused.place : byId("main")).focus({ preventScroll: true });
    }
  });

  // A notice is about the last change only: the next one takes it away, also if it brings none itself.
  let noticed = null;

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.requestConfig.verb !== "get") noticed = byId("toast")?.firstElementChild;
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.requestConfig.verb === "get" || !detail.successful || !noticed) return;
    if (byId("toast").firstElementChild === noticed && !noticed.contains(document.activeElement)) noticed.remove();
    noticed = null;
  });

  // A form that was not taken came back in its place: to what is wrong in it, which may be far from its button.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (![409, 422].includes(detail.xhr.status)) return;
    const form = byId("editor");
    const field = form?.querySelector('[aria-invalid="true"]');
    (field ?? form?.querySelector('[role="alert"]'))?.scrollIntoView({ block: "center" });
    field?.focus({ preventScroll: true });
  });

  // What a link leads to, in a popover beside it.
  document.addEventListener("htmx:afterSwap", ({ detail: { target, requestConfig } }) => {
    if (!target.matches("[popover]")) return;
    const box = requestConfig.elt.getBoundingClientRect();
    target.showPopover();
    if (innerWidth < 640) return;
    target.style.margin = 0;
    target.style.left = `${Math.max(8, Math.min(box.left, innerWidth - target.offsetWidth - 16))}px`;
    target.style.top = `${Math.max(8, Math.min(box.bottom + 4, innerHeight - target.offsetHeight - 16))}px`;
  });

  // Others have changed what is stored (patch.js).
  document.addEventListener("toolbelt:patched", () => every("form[data-control]").forEach(follow));

  for (const event of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(event, () => tell("not-reached"));
  }
  const TOLD = { 403: "not-yours", 429: "too-often", 502: "not-reached", 503: "not-reached", 504: "not-reached" };

  document.addEventListener("htmx:responseError", ({ detail }) => {
    const status = detail.xhr.status;
    if (detail.xhr.getResponseHeader("Toolbelt-Unavailable")) {
      tell("unavailable", detail.xhr.getResponseHeader("X-Request-ID") ?? "", detail.xhr.responseText);
      return;
    }
    tell(TOLD[status] ?? (status >= 500 ? "went-wrong" : "not-done"), detail.xhr.getResponseHeader("X-Request-ID") ?? "");
  });

  // What is opened, for parts that are asked for only then; `toggle` tells of what is closed, too.
  document.addEventListener(
    "toggle",
    ({ target, newState }) => {
      if (newState === "open") target.dispatchEvent(new Event("opened"));
    },
    true,
  );

  // The notice that a change takes long, until the response arrives.
  const PATIENCE = 4000;
  let patience = null;

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.requestConfig.verb === "get") return;
    clearTimeout(patience);
    patience = setTimeout(() => tell("too-slow"), PATIENCE);
  });

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.requestConfig.verb === "get") return;
    clearTimeout(patience);
    document.querySelector("[data-waiting]")?.remove();
  });

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-theme-choice] input")) chooseTheme(target.value);
    else if (target.matches("[data-shortcuts]")) kept.set("toolbelt:shortcuts", target.checked ? null : "off");
    else if (target.form?.dataset.control === "override") touched.add(target.form);
  });

  // The second half of a double click would flip back what the first half flipped.
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

  // Nor is a form sent again that leads to another page, while that is on its way; if none comes, it may be.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if ("sent" in form.dataset) event.preventDefault();
    form.dataset.sent = "";
    setTimeout(() => delete form.dataset.sent, PATIENCE);
  });
  addEventListener("pageshow", () => {
    for (const form of every("[data-sent]")) delete form.dataset.sent;
  });

  // Leaving an editor with changes that are not saved is asked about; what was just sent is saved.
  let isSaved = false;
  document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    isSaved ||= detail.requestConfig.verb === "post" && detail.xhr.getResponseHeader("HX-Redirect") !== null;
  });
  addEventListener("beforeunload", (event) => {
    if (isSaved || document.querySelector("form[data-sent]")) return;
    // A page that is left before all of its scripts ran has no unsaved changes.
    if (every("form[data-guarded]").some((form) => window.toolbelt?.isUnsaved(form))) event.preventDefault();
  });

  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-dismiss]")) dismiss();
    for (const menu of every("details.acts[open], details.you[open]")) menu.open = menu.contains(target);
    const copier = target.closest("[data-copies]");
    if (copier) copy(copier);
    const keyCopier = target.closest("[data-copy]");
    if (keyCopier) copyKey(keyCopier);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" && event.key !== "?") return;
    if (event.ctrlKey || event.metaKey || event.altKey || kept.get("toolbelt:shortcuts") === "off") return;
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

  // In a low window, the link of this page may be among those that are scrolled out of sight. Only the links scroll.
  const here = document.querySelector(".frame-wide > .menu-links [aria-current]");
  if (here) {
    const links = here.parentElement;
    links.scrollTop += Math.max(0, here.getBoundingClientRect().bottom - links.getBoundingClientRect().bottom + 4);
  }
  showTheme();
  for (const tick of every("[data-shortcuts]")) tick.checked = kept.get("toolbelt:shortcuts") !== "off";
  openQuestion();
})();
