// Which colours, and is there JavaScript? Answered before the first paint, so that nothing flashes.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("toolbelt:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // No storage: the system decides.
  }
})();
