// Live updates of a page. A stream delivers revision numbers; when a later revision arrives, the page is requested
// again. An indicator shows whether the stream is connected.
(() => {
  "use strict";

  const indicator = document.getElementById("live-state");
  const current = () => document.getElementById("revision");
  if (!window.htmx || !window.toolbelt || !indicator || !current()) return;

  const SELECTORS = ["#main", "#model", "header.frame"];
  // In milliseconds.
  const RECONNECT_AFTER = 5000;
  const MAX_SILENCE = 40000;
  const STOP_AFTER_HIDDEN = 10000;
  const MIN_GAP = 800;
  const [MIN_PAUSE, MAX_PAUSE] = [1000, 30000];
  const LABELS = {
    live: "Live",
    often: "Refreshes every 5 s",
    away: "Reconnecting…",
    over: "Not live: log in again",
    gone: "Not live: reload the page",
    unsaved: "Not live: unsaved changes",
  };
  // Calls and sessions change no revision, so pages that show them poll.
  const POLL_INTERVAL = 1000 * Number(indicator.dataset.every ?? 0);
  // A page that is too expensive to reload for each change only requests the number of new entries.
  const IS_STILL = "still" in indicator.dataset;
  const INTERVAL_TEXT = `every ${POLL_INTERVAL / 1000} s`;

  let activeController = null;
  let timer = 0;
  let watchdog = 0;
  let pause = MIN_PAUSE;
  let latest = 0;
  let refreshedAt = 0;
  let refreshTimer = 0;
  let isFetching = false;
  let requests = 0;
  let inFlight = 0;

  function showState(state) {
    if (indicator.dataset.state === state) return;
    const before = indicator.dataset.state;
    indicator.dataset.state = state;
    indicator.hidden = false;
    const often = POLL_INTERVAL ? `${LABELS.live}, ${indicator.dataset.what} ${INTERVAL_TEXT}` : LABELS.live;
    const live = IS_STILL ? `Refreshes ${INTERVAL_TEXT}` : often;
    const words = state === "live" || (state === "often" && IS_STILL) ? live : LABELS[state];
    indicator.querySelector("[data-words]").textContent = words;
    // Do not announce "Live" on load, nor "unsaved changes", which the page already shows.
    if (before || !["live", "often", "unsaved"].includes(state)) document.getElementById("live").textContent = words;
  }

  // Read the stream until it ends, and connect again after a pause.
  async function listen() {
    stop();
    const controller = (activeController = new AbortController());
    let isPolling = false;
    try {
      const address = `${indicator.dataset.url}?${new URLSearchParams({ agent: indicator.dataset.agent })}`;
      const response = await fetch(address, { signal: controller.signal, redirect: "manual", cache: "no-store" });
      if (response.type === "opaqueredirect") return showState("over");
      if (response.status === 404) return showState("gone");
      if (!response.ok) throw new Error(response.status);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        restartWatchdog(controller);
        const { done, value } = await reader.read();
        if (done) break;
        const events = (text + value).split("\n\n");
        text = events.pop();
        for (const event of events) isPolling = handleEvent(event) || isPolling;
      }
    } catch {
      if (controller.signal.aborted && activeController !== controller) return;
    }
    clearTimeout(watchdog);
    if (isPolling) {
      timer = setTimeout(listen, RECONNECT_AFTER);
      return;
    }
    showState("away");
    timer = setTimeout(listen, pause * (0.75 + Math.random() / 2));
    pause = Math.min(pause * 2, MAX_PAUSE);
  }

  // Handle an event. Return whether the server sends a single event for each connection, instead of a stream.
  function handleEvent(event) {
    const [, kind] = /^event: (\w+)/.exec(event) ?? [];
    if (!kind) return false;
    pause = MIN_PAUSE;
    showState(kind === "once" ? "often" : "live");
    latest = Math.max(latest, JSON.parse(event.slice(event.indexOf("{"))).revision);
    refresh();
    return kind === "once";
  }

  // The server sends something regularly, so a stream that is silent for long is broken.
  function restartWatchdog(controller) {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => controller.abort(), MAX_SILENCE);
  }

  function stop() {
    clearTimeout(timer);
    clearTimeout(watchdog);
    const before = activeController;
    activeController = null;
    before?.abort();
  }

  // Request the page again, but not more often than it can be read, nor during another request, whose response could be
  // older or newer.
  function refresh() {
    clearTimeout(refreshTimer);
    if (IS_STILL) return;
    if (latest <= Number(current().value) || inFlight) return;
    refreshTimer = setTimeout(fetchPage, Math.max(0, refreshedAt + MIN_GAP - Date.now()));
  }

  async function fetchPage() {
    // The pending request checks again when it ends; two responses could arrive in the wrong order.
    if (isFetching) return;
    isFetching = true;
    refreshedAt = Date.now();
    const [requestsBefore, href] = [requests, location.href];
    const address = new URL(href);
    address.hash = "";
    // Keep the tools of every section that has loaded them, however it was opened.
    for (const tools of document.querySelectorAll('#main ul[id$=":tools"]')) {
      const section = tools.id.slice(0, -":tools".length);
      if (!address.searchParams.getAll("open").includes(section)) address.searchParams.append("open", section);
    }
    const message = document.getElementById("try-message")?.value;
    if (message) address.searchParams.set("message", message);
    try {
      const headers = { "X-Toolbelt-Again": "1" };
      const response = await fetch(address, { headers, redirect: "manual", cache: "no-store" });
      if (response.type === "opaqueredirect") return stopWith("over");
      if (response.status === 404) return stopWith("gone");
      if (!response.ok) throw new Error(response.status);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const revision = page.getElementById("revision");
      if (!revision) return stopWith("gone");
      // The operator has sent a request in the meantime, so this response is out of date.
      if (requestsBefore !== requests || href !== location.href || inFlight) return refresh();
      current().value = revision.value;
      const hasChanges = window.toolbelt.patchPage(page, SELECTORS);
      if (hasChanges) document.getElementById("live").textContent ||= "The page was updated.";
    } catch {
      refreshTimer = setTimeout(refresh, MAX_PAUSE / 6);
      return;
    } finally {
      isFetching = false;
    }
    refresh();
  }

  // A log stays as it is while it is read, and shows how many entries are new. Other pages are requested again.
  async function poll() {
    if (!["live", "often"].includes(indicator.dataset.state)) return;
    if (document.visibilityState === "hidden" || inFlight) return;
    const news = document.getElementById("news");
    if (!IS_STILL) return fetchPage();
    if (!news) return;
    const [url, before] = [news.dataset.url, news.textContent.trim()];
    try {
      const response = await fetch(url, { redirect: "manual", cache: "no-store" });
      if (response.type === "opaqueredirect") return stopWith("over");
      if (!response.ok || document.getElementById("news")?.dataset.url !== url) return;
      window.toolbelt.patchPage(new DOMParser().parseFromString(await response.text(), "text/html"), ["#news"]);
      if (!before) document.getElementById("live").textContent = document.getElementById("news").textContent.trim();
    } catch {
      // The stream reports that the server is unreachable.
    }
  }

  function stopWith(state) {
    stop();
    showState(state);
  }

  // This page is the response to a form: its address shows another page, and the input exists only here.
  if (!indicator.dataset.url) return showState("unsaved");

  document.addEventListener("htmx:beforeRequest", () => {
    requests += 1;
    inFlight += 1;
  });
  document.addEventListener("htmx:afterRequest", () => {
    inFlight -= 1;
    refresh();
  });

  // A hidden page closes its stream, because a browser opens few connections to a server.
  let hiddenTimer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.visibilityState === "hidden") {
      hiddenTimer = setTimeout(stop, STOP_AFTER_HIDDEN);
      return;
    }
    if (!activeController || activeController.signal.aborted) listen();
    if (POLL_INTERVAL) poll();
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) listen();
  });
  addEventListener("online", () => {
    pause = MIN_PAUSE;
    listen();
  });
  addEventListener("offline", () => {
    stop();
    showState("away");
  });

  if (POLL_INTERVAL) setInterval(poll, POLL_INTERVAL);
  if (document.visibilityState === "visible") listen();
})();
