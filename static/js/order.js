// The order of responses: they are applied in the order of the changes, not of their arrival.
(() => {
  "use strict";

  if (!window.htmx) return;

  // Delay reads while a change is pending, and repeat reads that were already sent: their responses would not contain
  // the change, and would remove controls that wait for a response.
  const pendingChanges = new Set();
  const pendingReads = new WeakMap();
  const delayedReads = new Set();

  document.addEventListener("htmx:confirm", (event) => {
    const { elt, verb, issueRequest } = event.detail;
    if (verb !== "get") return;
    pendingReads.set(elt, issueRequest);
    if (!pendingChanges.size) return;
    event.preventDefault();
    delayedReads.add(elt);
  });

  document.addEventListener("htmx:beforeRequest", ({ detail: { xhr, requestConfig } }) => {
    if (!htmx.isChange(requestConfig)) return;
    pendingChanges.add(xhr);
    for (const elt of document.querySelectorAll(".htmx-request")) if (pendingReads.has(elt)) delayedReads.add(elt);
    xhr.addEventListener("readystatechange", () => keepForm(xhr, requestConfig.elt));
    // Listen to the request itself, because htmx sends no events for it if its form was removed.
    xhr.addEventListener("loadend", () => finishChange(xhr));
  });

  // Another response may have removed the form that sent this request, for example an Undo button. htmx sends no events
  // for it then, so put the form back, invisibly, until they are sent.
  function keepForm(xhr, form) {
    if (xhr.readyState !== XMLHttpRequest.DONE || form.isConnected) return;
    document.body.append(form);
    xhr.addEventListener("loadend", () => form.remove());
  }

  function finishChange(xhr) {
    pendingChanges.delete(xhr);
    if (pendingChanges.size) return;
    for (const elt of delayedReads) {
      htmx.trigger(elt, "htmx:abort");
      pendingReads.get(elt)(true);
    }
    delayedReads.clear();
  }

  // Responses may arrive out of order. A response older than the page only adds its notice: the newer response already
  // contains its change.
  const ALWAYS_SWAPPED = new Set(["dialog", "toast", "live"]);
  const latestRevisions = new Map();
  let isOutdated = false;

  function checkRevision(xhr) {
    const [agent, revision] = (xhr.getResponseHeader("X-Toolbelt-As-Of") ?? " 0").split(" ");
    isOutdated = Number(revision) < (latestRevisions.get(agent) ?? 0);
    if (!isOutdated) latestRevisions.set(agent, Number(revision));
  }

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    checkRevision(detail.xhr);
    if (delayedReads.has(detail.requestConfig.elt)) detail.shouldSwap = false;
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ target, detail }) => {
    if (isOutdated && !ALWAYS_SWAPPED.has(target.id)) detail.shouldSwap = false;
  });
})();
