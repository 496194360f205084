// Updates of a page to the state of the server, element by element. What the operator is using is updated only when
// they have finished with it; until then, a note beside it shows what changed.
(() => {
  "use strict";

  const queryAll = (selector, within = document) => [...within.querySelectorAll(selector)];
  // Each unit is updated as a whole, or waits as a whole.
  const UNIT = "li.tool, td, [data-control]";
  const HIGHLIGHTED = "li, tr, td, .switch-words, .section-counts";
  // Forms whose input could be lost. A switch has no input, and the input of a filter is in the page's address.
  const FORM = "form[method=post]:not([data-control]), form:has(.ticks)";
  const FIELD = "input:not([type=hidden]), textarea, select";
  const waitingUpdates = new Map();
  let inUse = new Set();
  let changedElements = new Set();
  let addedNodes = [];

  function unitOf(element) {
    const form = element.closest("form");
    const unit = element.closest(UNIT) ?? form ?? element;
    return unit.closest("li.tool") ?? unit;
  }

  function isEdited(field) {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (!field.matches("select")) return field.value !== field.defaultValue;
    const first = [...field.options].findIndex((option) => option.defaultSelected);
    return field.options.length > 0 && field.selectedIndex !== Math.max(0, first);
  }

  // Return whether the form has input that is not stored: typed here, or returned by the server.
  function isUnsaved(form) {
    return "unsaved" in form.dataset || queryAll(FIELD, form).some(isEdited);
  }

  // Return the units that have the focus, unsaved input, a pending request or an open menu.
  function findInUse(root) {
    const active = document.activeElement;
    const used = queryAll("form.htmx-request, [data-control] details[open], .tool details[open]", root);
    used.push(...queryAll(FORM, root).filter(isUnsaved));
    if (root.contains(active) && active.matches("a, button, input, select, textarea, summary")) used.push(active);
    return new Set(used.map(unitOf));
  }

  // Identify a section by its title, and a row by its link.
  function keyOf(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.id) return `#${node.id}`;
    if (node.hasAttribute("aria-labelledby")) return `of ${node.getAttribute("aria-labelledby")}`;
    if (!node.matches("li, tr, td, section, article, form")) return "";
    const target = node.matches("form") ? node : node.querySelector("form[action], a[href]");
    return target ? `${node.localName} ${target.getAttribute("action") ?? target.getAttribute("href")}` : "";
  }

  function isSame(old, fresh) {
    return (
      old.nodeType === fresh.nodeType &&
      old.nodeName === fresh.nodeName &&
      keyOf(old) === keyOf(fresh) &&
      old.type === fresh.type &&
      old.name === fresh.name
    );
  }

  // Keep what the operator has opened, the group of a row, and the token of a form.
  function keepsAttribute(element, name) {
    if (name === "data-group") return true;
    if (name === "open") return element.localName === "details";
    return name === "value" && ["csrfmiddlewaretoken", "next"].includes(element.name);
  }

  function patchAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !keepsAttribute(old, name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !keepsAttribute(old, name)) old.setAttribute(name, value);
    }
  }

  function patch(old, fresh) {
    if (inUse.has(old)) return holdUpdate(old, fresh);
    // The server does not know texts that scripts set.
    if (old.dataset && "own" in old.dataset) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data === fresh.data) return;
      old.data = fresh.data;
      // Do not highlight relative times.
      if (!old.parentElement.closest("time")) changedElements.add(old.parentElement.closest(HIGHLIGHTED));
      return;
    }
    // Without a reset, a field that was edited and restored would keep its old value.
    if (old.matches(FORM)) old.reset();
    patchAttributes(old, fresh);
    patchChildren(old, fresh);
  }

  function patchChildren(old, fresh) {
    // Several children may have the same key, as the controls of one plugin do: match them in order.
    const childrenByKey = new Map();
    for (const child of old.childNodes) {
      const key = keyOf(child);
      if (childrenByKey.has(key)) childrenByKey.get(key).push(child);
      else if (key) childrenByKey.set(key, [child]);
    }
    let next = old.firstChild;
    // Rows that stay where the operator sees them, although they would now be sorted elsewhere.
    const keptInPlace = new Set();
    for (const freshChild of [...fresh.childNodes]) {
      const key = keyOf(freshChild);
      let match = key ? childrenByKey.get(key)?.shift() : next;
      while (!key && match && !isSame(match, freshChild)) match = match.nextSibling;
      if (match && isSame(match, freshChild)) {
        if (match === next) next = next.nextSibling;
        else if ("row" in (match.dataset ?? {})) keptInPlace.add(match);
        else old.insertBefore(match, next);
        patch(match, freshChild);
      } else {
        const copy = document.importNode(freshChild, true);
        old.insertBefore(copy, next);
        addedNodes.push(copy);
      }
    }
    while (next) {
      const removed = next;
      next = next.nextSibling;
      if (keptInPlace.has(removed)) continue;
      const used = [...inUse].filter((unit) => removed.contains(unit));
      if (!used.length) removed.remove();
      else waitingUpdates.set(removed, null);
      for (const form of used) if (form.matches(FORM)) showFormNote(form, "This was removed.");
    }
  }

  // Return what a form was filled from: its fields `was`, or everything that it shows except times.
  function sourceOf(form) {
    const stored = queryAll("[name=was]", form).map((field) => field.value);
    if (stored.length) return stored.join("\n");
    const copy = form.cloneNode(true);
    for (const other of queryAll("time, [data-mark], [data-own], [name=csrfmiddlewaretoken]", copy)) other.remove();
    const values = queryAll("input, option", copy).map((field) => field.getAttribute("value"));
    return [copy.textContent.replace(/\s+/g, " "), ...values].join("\n");
  }

  // Keep an update for a unit that is in use, and show a note if the stored state differs from what the unit was filled
  // from.
  function holdUpdate(unit, fresh) {
    waitingUpdates.set(unit, fresh);
    if (!fresh) return showFormNote(unit, "This was removed.");
    const [was, is] = [unit, fresh].map((part) => part.querySelector("[name=was]"));
    if (is?.dataset.now) {
      const by = is.dataset.by ? `by ${is.dataset.by}` : "in the meantime";
      showNote(unit, was?.value === is.value ? "" : `Changed ${by}: now ${is.dataset.now}`, is.dataset.what);
    } else if (unit.matches(FORM)) {
      showFormNote(unit, sourceOf(unit) === sourceOf(fresh) ? "" : "This was changed in the meantime.");
    }
  }

  function showFormNote(form, text) {
    if (!text || !form.querySelector(FIELD)) return showNote(form, text);
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "link", textContent: "Discard my changes and show the new values" });
    button.dataset.discards = "";
    showNote(form, `${text} Your unsaved changes are kept.`, "", button);
  }

  function showNote(unit, text, what = "", button = null) {
    let note = unit.querySelector("[data-mark]");
    if (!text) return note?.remove();
    if (!note) {
      note = document.createElement("p");
      note.className = "meanwhile";
      note.dataset.mark = "";
      unit.append(note);
    }
    if (note.dataset.mark === text) return;
    note.dataset.mark = text;
    note.replaceChildren(...[text, button].filter(Boolean));
    document.getElementById("live").textContent = what ? `${what}: ${text}` : text;
  }

  function beginPatch(used) {
    inUse = used;
    changedElements = new Set();
    addedNodes = [];
  }

  function finishPatch(focused) {
    for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) htmx.process(node);
    for (const element of changedElements) {
      if (!element) continue;
      element.classList.add("arrived");
      element.addEventListener("animationend", () => element.classList.remove("arrived"), { once: true });
    }
    document.dispatchEvent(new CustomEvent("toolbelt:patched"));
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  // Update the elements that match the selectors from a newly loaded page. Return whether anything visible has changed.
  function patchPage(page, selectors) {
    const focused = document.activeElement;
    beginPatch(findInUse(document));
    for (const selector of selectors) {
      const [old, fresh] = [document, page].map((root) => root.querySelector(selector));
      if (!old || !fresh) continue;
      for (const unit of [...waitingUpdates.keys()]) if (old.contains(unit)) waitingUpdates.delete(unit);
      patch(old, fresh);
    }
    finishPatch(focused);
    return changedElements.size > 0;
  }

  // When the focus leaves, apply the updates that wait.
  function applyWaiting() {
    const used = waitingUpdates.size ? [...findInUse(document)] : [];
    for (const [unit, fresh] of [...waitingUpdates]) {
      if (used.some((other) => unit.contains(other))) continue;
      applyUpdate(unit, fresh);
    }
  }

  function applyUpdate(unit, fresh) {
    waitingUpdates.delete(unit);
    if (!unit.isConnected) return;
    const focused = document.activeElement;
    unit.querySelector("[data-mark]")?.remove();
    beginPatch(new Set());
    if (fresh) patch(unit, fresh);
    else unit.remove();
    finishPatch(focused);
  }

  // The operator discards their input for the current state.
  function discard(form) {
    const [unit, fresh] = [...waitingUpdates].find(([other]) => other.contains(form)) ?? [];
    if (!unit) return;
    const container = unit.closest('[tabindex="-1"]');
    applyUpdate(unit, fresh);
    if (document.activeElement === document.body) container?.focus({ preventScroll: true });
  }

  document.addEventListener("focusout", () => setTimeout(applyWaiting));
  document.addEventListener("toggle", () => setTimeout(applyWaiting), true);
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-discards]")) discard(target.closest("form"));
  });
  // The response to a unit's own change is newer than the update that waits, so discard the update. A form that was
  // returned unsaved still waits.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!htmx.isChange(detail.requestConfig)) return;
    for (const [unit, fresh] of [...waitingUpdates]) {
      if (!unit.contains(detail.requestConfig.elt)) continue;
      waitingUpdates.delete(unit);
      const form = unit.isConnected ? unit : document.getElementById(unit.id);
      if (form?.matches(FORM) && isUnsaved(form)) holdUpdate(form, fresh);
      else unit.querySelector("[data-mark]")?.remove();
    }
  });

  window.toolbelt = { patchPage, isUnsaved };
})();
