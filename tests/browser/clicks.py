"""Count the clicks that a task takes, including keys that do what a click does."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page

# A key that is typed into a field does not count; every other key does, wherever the focus is.
_COUNT = """() => {
    // A window may outlive its first document.
    if (window.countsClicks) return;
    window.countsClicks = true;
    const count = (event) => {
        if (event.isTrusted) sessionStorage.setItem("clicks", 1 + Number(sessionStorage.getItem("clicks")));
    };
    addEventListener("pointerdown", count, true);
    addEventListener("keydown", (event) => {
        const isTyped = event.target.matches("input:not([type=checkbox], [type=radio]), textarea");
        if (event.key === "Enter" || !isTyped) count(event);
    }, true);
}"""


class Task:
    """A task that starts at the Overview. The browser itself counts its clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.add_init_script(f"({_COUNT})()")
        page.goto("/")
        page.evaluate("sessionStorage.removeItem('clicks')")

    @property
    def clicks(self) -> int:
        """Return the number of clicks since the Overview."""
        return int(self.page.evaluate("Number(sessionStorage.getItem('clicks'))"))

    def filter(self, text: str) -> None:
        """Type into the filter of the page and wait for its rows; focusing it is not counted, because `/` does that."""
        self.page.get_by_role("searchbox").first.fill(text)
        # A row could be replaced while it is clicked.
        self.page.wait_for_url(re.compile(r"[?&]q=[^&]"))

    def open_agent(self, title: str) -> None:
        """Go from the Overview to an agent."""
        self.link(title).click()
        self.page.get_by_role("heading", level=1, name=title).wait_for()

    def link(self, name: str) -> Locator:
        """Return the link of this name outside the navigation."""
        return self.page.get_by_role("main").get_by_role("link", name=name, exact=True).first
