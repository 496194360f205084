// Charts. Their days are links: one is in the tab order, and the arrow keys move the focus to the others. The value of
// the day that has the focus or the pointer is shown beside the chart.
(() => {
  "use strict";

  const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  const dayOf = (element) => element.closest("[data-points] a");

  function showValue(link, text) {
    const output = link.closest("section, figure").querySelector("[data-reads]");
    if (output) output.textContent = text;
  }

  for (const event of ["focusin", "pointerover"]) {
    document.addEventListener(event, ({ target }) => {
      const link = dayOf(target);
      if (link) showValue(link, link.querySelector("title").textContent);
    });
  }
  for (const event of ["focusout", "pointerout"]) {
    document.addEventListener(event, ({ target }) => {
      const link = dayOf(target);
      if (link) showValue(link, "");
    });
  }

  document.addEventListener("keydown", (event) => {
    const link = dayOf(event.target);
    if (!link || !(event.key in STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const days = [...link.closest("[data-points]").querySelectorAll("a")];
    const next = days[Math.max(0, Math.min(days.length - 1, days.indexOf(link) + STEPS[event.key]))];
    link.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
})();
