// How does a page become what the server says it is by now, without taking anything from under somebody's hands?
// Element by element, each where it was: what is in use stays as it is until it is let go of, and says what changed.
(() => {
  "use strict";

  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  // What is one thing to whoever uses it: it changes as a whole, or waits as a whole.
  const UNIT = "li.tool, td, [data-control]";
  const ARRIVES = "li, tr, td, .switch-said, .section-counts";
  const waiting = new Map();
  let inUse = new Set();
  let arrived = new Set();
  let added = [];

  function unitOf(element) {
    const form = element.closest("form");
    const unit = element.closest(UNIT) ?? form ?? element;
    return unit.closest("li.tool") ?? unit;
  }

  // What has the focus, what waits for its answer, and what is opened up to be chosen from.
  function findUsed(root) {
    const active = document.activeElement;
    const used = every("form.htmx-request, [data-control] details[open], .tool details[open]", root);
    if (root.contains(active) && active.matches("a, button, input, select, textarea, summary")) used.push(active);
    return new Set(used.map(unitOf));
  }

  // By what is a thing known again? A line is known by where it leads.
  function keyOf(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.id) return `#${node.id}`;
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

  // Whether somebody opened it is theirs to say; and a form goes on with the token that it has.
  function keeps(element, name) {
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
    patchAttributes(old, fresh);
    patchChildren(old, fresh);
  }

  function patchChildren(old, fresh) {
    const known = new Map();
    for (const child of old.childNodes) if (keyOf(child) && !known.has(keyOf(child))) known.set(keyOf(child), child);
    let next = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const key = keyOf(wanted);
      let found = key ? known.get(key) : next;
      known.delete(key);
      while (!key && found && !isSame(found, wanted)) found = found.nextSibling;
      if (found && isSame(found, wanted)) {
        if (found === next) next = next.nextSibling;
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
      if ([...inUse].some((used) => gone.contains(used))) waiting.set(gone, null);
      else gone.remove();
    }
  }

  // What is in use waits, and says so if it is not what it was.
  function hold(unit, fresh) {
    waiting.set(unit, fresh);
    const [was, is] = [unit, fresh].map((part) => part.querySelector("[name=was]"));
    if (!was || !is) return;
    let mark = unit.querySelector("[data-mark]");
    if (was.value === is.value) {
      mark?.remove();
      return;
    }
    if (!mark) {
      mark = document.createElement("p");
      mark.className = "meanwhile";
      mark.dataset.mark = "";
      unit.append(mark);
    }
    const said = `Changed by ${is.dataset.by || "somebody else"}: now ${is.dataset.now}`;
    if (mark.textContent === said) return;
    mark.textContent = said;
    document.getElementById("live").textContent = `${is.dataset.what}: ${said}`;
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
    waiting.clear();
    begin(findUsed(document));
    for (const selector of selectors) {
      const [old, fresh] = [document, page].map((side) => side.querySelector(selector));
      if (old && fresh) patch(old, fresh);
    }
    finish(focused);
    return arrived.size > 0;
  }

  // Let go of: then it is what it is by now.
  function release() {
    const used = findUsed(document);
    for (const [unit, fresh] of [...waiting]) {
      if (used.has(unit)) continue;
      waiting.delete(unit);
      if (!unit.isConnected) continue;
      const focused = document.activeElement;
      unit.querySelector("[data-mark]")?.remove();
      begin(new Set());
      if (fresh) patch(unit, fresh);
      else unit.remove();
      finish(focused);
    }
  }

  document.addEventListener("focusout", () => setTimeout(release));
  document.addEventListener("toggle", () => setTimeout(release), true);
  // What an answer of its own has brought is newer than what waited.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.requestConfig.verb === "get") return;
    for (const unit of waiting.keys()) {
      if (!unit.contains(detail.elt)) continue;
      unit.querySelector("[data-mark]")?.remove();
      waiting.delete(unit);
    }
  });

  window.toolbelt = { bring };
})();
