// In which order do answers take effect, when they arrive in another one?
(() => {
  "use strict";

  if (!window.htmx) return;

  // What is read goes neither before nor beside a change: it would come without it, and take away controls that wait
  // for their answer. Meanwhile it waits; what was on its way is asked for again.
  const changing = new Set();
  const asks = new WeakMap();
  const later = new Set();

  document.addEventListener("htmx:confirm", (event) => {
    const { elt, verb, issueRequest } = event.detail;
    if (verb !== "get") return;
    asks.set(elt, issueRequest);
    if (!changing.size) return;
    event.preventDefault();
    later.add(elt);
  });

  document.addEventListener("htmx:beforeRequest", ({ detail: { xhr, requestConfig } }) => {
    if (requestConfig.verb === "get") return;
    changing.add(xhr);
    for (const elt of document.querySelectorAll(".htmx-request")) if (asks.has(elt)) later.add(elt);
    xhr.addEventListener("readystatechange", () => hear(xhr, requestConfig.elt));
    // However it ends, and wherever its form is by then.
    xhr.addEventListener("loadend", () => end(xhr));
  });

  // Another response may have removed the form of this one, as it does with an Undo button. Then htmx would send no
  // event: the form is put back, invisibly, until the event is sent.
  function hear(xhr, form) {
    if (xhr.readyState !== XMLHttpRequest.DONE || form.isConnected) return;
    document.body.append(form);
    xhr.addEventListener("loadend", () => form.remove());
  }

  function end(xhr) {
    changing.delete(xhr);
    if (changing.size) return;
    for (const elt of later) {
      htmx.trigger(elt, "htmx:abort");
      asks.get(elt)(true);
    }
    later.clear();
  }

  // Answers to changes may overtake each other. One that is older than what is here says what it has to say, and
  // leaves the page as it is: the newer one knew of this change.
  const SAID = new Set(["dialog", "toast", "live"]);
  const newest = new Map();
  let isOverdue = false;

  function compare(xhr) {
    const [agent, revision] = (xhr.getResponseHeader("X-Toolbelt-As-Of") ?? " 0").split(" ");
    isOverdue = Number(revision) < (newest.get(agent) ?? 0);
    if (!isOverdue) newest.set(agent, Number(revision));
  }

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    compare(detail.xhr);
    if (later.has(detail.requestConfig.elt)) detail.shouldSwap = false;
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ target, detail }) => {
    if (isOverdue && !SAID.has(target.id)) detail.shouldSwap = false;
  });
})();
