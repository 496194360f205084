// Update a page to the state of the server, element by element, without changing what the operator is using: that stays
// as it is until it is no longer used, and says what changed.
(() => {
  "use strict";

  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  // Units: each changes as a whole, or waits as a whole.
  const UNIT = "li.tool, td, [data-control]";
  const ARRIVES = "li, tr, td, .switch-words, .section-counts";
  // What is filled in and then sent. A switch has nothing to fill in, and a filter is at the page's address.
  const FORM = "form[method=post]:not([data-control]), form:has(.ticks)";
  const FILLED = "input:not([type=hidden]), textarea, select";
  const waiting = new Map();
  let inUse = new Set();
  let arrived = new Set();
  let added = [];

  function unitOf(element) {
    const form = element.closest("form");
    const unit = element.closest(UNIT) ?? form ?? element;
    return unit.closest("li.tool") ?? unit;
  }

  function isOther(field) {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (!field.matches("select")) return field.value !== field.defaultValue;
    const first = [...field.options].findIndex((option) => option.defaultSelected);
    return field.options.length > 0 && field.selectedIndex !== Math.max(0, first);
  }

  // Whether the form has input that is not stored: typed here, or returned by the server.
  function isUnsaved(form) {
    return "unsaved" in form.dataset || every(FILLED, form).some(isOther);
  }

  // What has the focus or is not saved, what waits for its answer, and what is opened up to be chosen from.
  function findUsed(root) {
    const active = document.activeElement;
    const used = every("form.htmx-request, [data-control] details[open], .tool details[open]", root);
    used.push(...every(FORM, root).filter(isUnsaved));
    if (root.contains(active) && active.matches("a, button, input, select, textarea, summary")) used.push(active);
    return new Set(used.map(unitOf));
  }

  // By what is a thing known again? A section is known by its title, a line by where it leads.
  function keyOf(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.id) return `#${node.id}`;
    if (node.hasAttribute("aria-labelledby")) return `of ${node.getAttribute("aria-labelledby")}`;
    if (!node.matches("li, tr, td, section, article, form")) return "";
    const about = node.matches("form") ? node : node.querySelector("form[action], a[href]");
    return about ? `${node.localName} ${about.getAttribute("action") ?? about.getAttribute("href")}` : "";
  }

  function isSame(one, other) {
    return (
      one.nodeType === other.nodeType &&
      one.nodeName === other.nodeName &&
      keyOf(one) === keyOf(other) &&
      one.type === other.type &&
      one.name === other.name
    );
  }

  // The operator decides what is open; a row keeps its group, and a form its token.
  function keeps(element, name) {
    if (name === "data-group") return true;
    if (name === "open") return element.localName === "details";
    return name === "value" && ["csrfmiddlewaretoken", "next"].includes(element.name);
  }

  function patchAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !keeps(old, name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !keeps(old, name)) old.setAttribute(name, value);
    }
  }

  function patch(old, fresh) {
    if (inUse.has(old)) return hold(old, fresh);
    // What scripts say, no page knows.
    if (old.dataset && "own" in old.dataset) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data === fresh.data) return;
      old.data = fresh.data;
      // That time goes by is no news.
      if (!old.parentElement.closest("time")) arrived.add(old.parentElement.closest(ARRIVES));
      return;
    }
    // Otherwise a field that was edited and restored would not follow.
    if (old.matches(FORM)) old.reset();
    patchAttributes(old, fresh);
    patchChildren(old, fresh);
  }

  function patchChildren(old, fresh) {
    // Several may have one key, as the controls of one plugin: then each is the next of them.
    const known = new Map();
    for (const child of old.childNodes) {
      const key = keyOf(child);
      if (known.has(key)) known.get(key).push(child);
      else if (key) known.set(key, [child]);
    }
    let next = old.firstChild;
    // A row stays where the operator sees it, wherever its state would put it now.
    const stays = new Set();
    for (const wanted of [...fresh.childNodes]) {
      const key = keyOf(wanted);
      let found = key ? known.get(key)?.shift() : next;
      while (!key && found && !isSame(found, wanted)) found = found.nextSibling;
      if (found && isSame(found, wanted)) {
        if (found === next) next = next.nextSibling;
        else if ("row" in (found.dataset ?? {})) stays.add(found);
        else old.insertBefore(found, next);
        patch(found, wanted);
      } else {
        const made = document.importNode(wanted, true);
        old.insertBefore(made, next);
        added.push(made);
      }
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      if (stays.has(gone)) continue;
      const used = [...inUse].filter((unit) => gone.contains(unit));
      if (!used.length) gone.remove();
      else waiting.set(gone, null);
      for (const form of used) if (form.matches(FORM)) markForm(form, "This was removed.");
    }
  }

  // What a form was filled from: that which it says itself (`was`), or all that it shows, but for how long ago that was.
  function sourceOf(form) {
    const stored = every("[name=was]", form).map((field) => field.value);
    if (stored.length) return stored.join("\n");
    const copy = form.cloneNode(true);
    for (const other of every("time, [data-mark], [data-own], [name=csrfmiddlewaretoken]", copy)) other.remove();
    const values = every("input, option", copy).map((field) => field.getAttribute("value"));
    return [copy.textContent.replace(/\s+/g, " "), ...values].join("\n");
  }

  // What is in use waits, and says so if it is not what it was.
  function hold(unit, fresh) {
    waiting.set(unit, fresh);
    if (!fresh) return markForm(unit, "This was removed.");
    const [was, is] = [unit, fresh].map((part) => part.querySelector("[name=was]"));
    if (is?.dataset.now) {
      const by = is.dataset.by || "another operator";
      mark(unit, was?.value === is.value ? "" : `Changed by ${by}: now ${is.dataset.now}`, is.dataset.what);
    } else if (unit.matches(FORM)) {
      markForm(unit, sourceOf(unit) === sourceOf(fresh) ? "" : "Another operator changed this.");
    }
  }

  function markForm(form, text) {
    if (!text || !form.querySelector(FILLED)) return mark(form, text);
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "link", textContent: "Discard my changes and show theirs" });
    button.dataset.discards = "";
    mark(form, `${text} Your unsaved changes are kept.`, "", button);
  }

  function mark(unit, text, what = "", button = null) {
    let place = unit.querySelector("[data-mark]");
    if (!text) return place?.remove();
    if (!place) {
      place = document.createElement("p");
      place.className = "meanwhile";
      place.dataset.mark = "";
      unit.append(place);
    }
    if (place.dataset.mark === text) return;
    place.dataset.mark = text;
    place.replaceChildren(...[text, button].filter(Boolean));
    document.getElementById("live").textContent = what ? `${what}: ${text}` : text;
  }

  function begin(used) {
    inUse = used;
    arrived = new Set();
    added = [];
  }

  function finish(focused) {
    for (const node of added) if (node.nodeType === Node.ELEMENT_NODE) htmx.process(node);
    for (const place of arrived) {
      if (!place) continue;
      place.classList.add("arrived");
      place.addEventListener("animationend", () => place.classList.remove("arrived"), { once: true });
    }
    document.dispatchEvent(new CustomEvent("toolbelt:patched"));
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  // Bring these parts of the page in line with a page that was made just now; say whether anything is new to see.
  function bring(page, selectors) {
    const focused = document.activeElement;
    begin(findUsed(document));
    for (const selector of selectors) {
      const [old, fresh] = [document, page].map((side) => side.querySelector(selector));
      if (!old || !fresh) continue;
      for (const unit of [...waiting.keys()]) if (old.contains(unit)) waiting.delete(unit);
      patch(old, fresh);
    }
    finish(focused);
    return arrived.size > 0;
  }

  // Let go of: then it is what it is by now.
  function release() {
    const used = waiting.size ? [...findUsed(document)] : [];
    for (const [unit, fresh] of [...waiting]) {
      if (used.some((one) => unit.contains(one))) continue;
      settle(unit, fresh);
    }
  }

  function settle(unit, fresh) {
    waiting.delete(unit);
    if (!unit.isConnected) return;
    const focused = document.activeElement;
    unit.querySelector("[data-mark]")?.remove();
    begin(new Set());
    if (fresh) patch(unit, fresh);
    else unit.remove();
    finish(focused);
  }

  // The operator chose the current state over their input.
  function discard(form) {
    const [unit, fresh] = [...waiting].find(([one]) => one.contains(form)) ?? [];
    if (!unit) return;
    const place = unit.closest('[tabindex="-1"]');
    settle(unit, fresh);
    if (document.activeElement === document.body) place?.focus({ preventScroll: true });
  }

  document.addEventListener("focusout", () => setTimeout(release));
  document.addEventListener("toggle", () => setTimeout(release), true);
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-discards]")) discard(target.closest("form"));
  });
  // What an answer of its own has brought is newer than what waited; but a form that came back unsaved still waits.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.requestConfig.verb === "get") return;
    for (const [unit, fresh] of [...waiting]) {
      if (!unit.contains(detail.requestConfig.elt)) continue;
      waiting.delete(unit);
      const form = unit.isConnected ? unit : document.getElementById(unit.id);
      if (form?.matches(FORM) && isUnsaved(form)) hold(form, fresh);
      else unit.querySelector("[data-mark]")?.remove();
    }
  });

  window.toolbelt = { bring, isUnsaved };
})();
