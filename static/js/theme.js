// The theme, the time zone, and the class `js`, set before the first paint so that nothing flashes.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const safe = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `toolbelt-zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax${safe}`;
  try {
    const theme = localStorage.getItem("toolbelt:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Without storage, the system's theme applies.
  }
})();
