// The days of a chart are links: one of them is in the tab order, and the arrow keys move the focus to the days beside
// it. What the focus or the pointer is on is written beside the chart.
(() => {
  "use strict";

  const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  const day = (element) => element.closest("[data-points] a");

  function read(link, words) {
    const place = link.closest("section, figure").querySelector("[data-reads]");
    if (place) place.textContent = words;
  }

  for (const event of ["focusin", "pointerover"]) {
    document.addEventListener(event, ({ target }) => {
      const link = day(target);
      if (link) read(link, link.querySelector("title").textContent);
    });
  }
  for (const event of ["focusout", "pointerout"]) {
    document.addEventListener(event, ({ target }) => {
      const link = day(target);
      if (link) read(link, "");
    });
  }

  document.addEventListener("keydown", (event) => {
    const link = day(event.target);
    if (!link || !(event.key in STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const days = [...link.closest("[data-points]").querySelectorAll("a")];
    const next = days[Math.max(0, Math.min(days.length - 1, days.indexOf(link) + STEPS[event.key]))];
    link.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
})();
