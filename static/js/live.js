// Updates a page when others change something. It listens to a stream of revision numbers, requests the page again when
// a later revision arrives, and shows whether the stream is connected.
(() => {
  "use strict";

  const place = document.getElementById("live-state");
  const current = () => document.getElementById("revision");
  if (!window.htmx || !window.toolbelt || !place || !current()) return;

  const PARTS = ["#main", "#model", "header.frame"];
  const POLL = 5000;
  const SILENCE = 40000;
  const HIDDEN = 10000;
  const GAP = 800;
  const [SHORTEST, LONGEST] = [1000, 30000];
  const WORDS = {
    live: "Live",
    often: "Refreshes every 5 s",
    away: "Reconnecting…",
    over: "Not live: log in again",
    gone: "Not live: reload the page",
    unsaved: "Not live: unsaved changes",
  };
  // What changes no revision (calls, sessions) is polled.
  const EVERY = 1000 * Number(place.dataset.every ?? 0);
  // A page that is too expensive to reload for each change only receives the number of new entries.
  const IS_STILL = "still" in place.dataset;
  const POLLS = `every ${EVERY / 1000} s`;

  let control = null;
  let timer = 0;
  let watchdog = 0;
  let pause = SHORTEST;
  let latest = 0;
  let refreshedAt = 0;
  let refreshing = 0;
  let isAsking = false;
  let requests = 0;
  let underWay = 0;

  function say(state) {
    if (place.dataset.state === state) return;
    const before = place.dataset.state;
    place.dataset.state = state;
    place.hidden = false;
    const often = EVERY ? `${WORDS.live}, ${place.dataset.what} ${POLLS}` : WORDS.live;
    const live = IS_STILL ? `Refreshes ${POLLS}` : often;
    const words = state === "live" || (state === "often" && IS_STILL) ? live : WORDS[state];
    place.querySelector("[data-words]").textContent = words;
    // At first it is no news that it is live; that it is not, is. And of what is not saved, the page itself tells.
    if (before || !["live", "often", "unsaved"].includes(state)) document.getElementById("live").textContent = words;
  }

  // The stream.
  async function listen() {
    stop();
    const mine = (control = new AbortController());
    let once = false;
    try {
      const address = `${place.dataset.url}?${new URLSearchParams({ agent: place.dataset.agent })}`;
      const answer = await fetch(address, { signal: mine.signal, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") return say("over");
      if (answer.status === 404) return say("gone");
      if (!answer.ok) throw new Error(answer.status);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        watch(mine);
        const { done, value } = await reader.read();
        if (done) break;
        const events = (text + value).split("\n\n");
        text = events.pop();
        for (const event of events) once = hear(event) || once;
      }
    } catch {
      if (mine.signal.aborted && control !== mine) return;
    }
    clearTimeout(watchdog);
    if (once) {
      timer = setTimeout(listen, POLL);
      return;
    }
    say("away");
    timer = setTimeout(listen, pause * (0.75 + Math.random() / 2));
    pause = Math.min(pause * 2, LONGEST);
  }

  function hear(event) {
    const [, kind] = /^event: (\w+)/.exec(event) ?? [];
    if (!kind) return false;
    pause = SHORTEST;
    say(kind === "once" ? "often" : "live");
    latest = Math.max(latest, JSON.parse(event.slice(event.indexOf("{"))).revision);
    refresh();
    return kind === "once";
  }

  // A stream is never silent for long: a silent stream is dead.
  function watch(mine) {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => mine.abort(), SILENCE);
  }

  function stop() {
    clearTimeout(timer);
    clearTimeout(watchdog);
    const before = control;
    control = null;
    before?.abort();
  }

  // Reload the page, but not more often than it can be read, nor during another request, whose response could be older
  // or newer.
  function refresh() {
    clearTimeout(refreshing);
    if (IS_STILL) return;
    if (latest <= Number(current().value) || underWay) return;
    refreshing = setTimeout(fetchPage, Math.max(0, refreshedAt + GAP - Date.now()));
  }

  async function fetchPage() {
    // Who is asked already asks again where that is not enough; two answers might come in the wrong order.
    if (isAsking) return;
    isAsking = true;
    refreshedAt = Date.now();
    const [asked, here] = [requests, location.href];
    const address = new URL(here);
    address.hash = "";
    // Sections whose tools are here stay so, in whichever way they were opened.
    for (const tools of document.querySelectorAll('#main ul[id$=":tools"]')) {
      const section = tools.id.slice(0, -":tools".length);
      if (!address.searchParams.getAll("open").includes(section)) address.searchParams.append("open", section);
    }
    const tried = document.getElementById("try-message")?.value;
    if (tried) address.searchParams.set("message", tried);
    try {
      const answer = await fetch(address, { headers: { "X-Toolbelt-Again": "1" }, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") return stopWith("over");
      if (answer.status === 404) return stopWith("gone");
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("revision");
      if (!fresh) return stopWith("gone");
      // The operator did something in the meantime, so this response is out of date.
      if (asked !== requests || here !== location.href || underWay) return refresh();
      current().value = fresh.value;
      const isNews = window.toolbelt.bring(page, PARTS);
      if (isNews) document.getElementById("live").textContent ||= "The page was brought up to date.";
    } catch {
      refreshing = setTimeout(refresh, LONGEST / 6);
      return;
    } finally {
      isAsking = false;
    }
    refresh();
  }

  // A log does not move while it is read: it shows how many entries are new. Other pages reload.
  async function look() {
    if (!["live", "often"].includes(place.dataset.state) || document.visibilityState === "hidden" || underWay) return;
    const news = document.getElementById("news");
    if (!IS_STILL) return fetchPage();
    if (!news) return;
    const [asked, before] = [news.dataset.url, news.textContent.trim()];
    try {
      const answer = await fetch(asked, { redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") return stopWith("over");
      if (!answer.ok || document.getElementById("news")?.dataset.url !== asked) return;
      window.toolbelt.bring(new DOMParser().parseFromString(await answer.text(), "text/html"), ["#news"]);
      if (!before) document.getElementById("live").textContent = document.getElementById("news").textContent.trim();
    } catch {
      // That the server is away, the stream tells.
    }
  }

  function stopWith(state) {
    stop();
    say(state);
  }

  // The page answers a form: at its address is another one, and what was typed is here alone.
  if (!place.dataset.url) return say("unsaved");

  document.addEventListener("htmx:beforeRequest", () => {
    requests += 1;
    underWay += 1;
  });
  document.addEventListener("htmx:afterRequest", () => {
    underWay -= 1;
    refresh();
  });

  // A hidden page closes its stream, because a browser has few connections to a server.
  let hidden = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.visibilityState === "hidden") {
      hidden = setTimeout(stop, HIDDEN);
      return;
    }
    if (!control || control.signal.aborted) listen();
    if (EVERY) look();
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) listen();
  });
  addEventListener("online", () => {
    pause = SHORTEST;
    listen();
  });
  addEventListener("offline", () => {
    stop();
    say("away");
  });

  if (EVERY) setInterval(look, EVERY);
  if (document.visibilityState === "visible") listen();
})();
