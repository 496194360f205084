"""Counts what an operator presses on the way through a job: clicks, and keys that do what a click does."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page

# A key that is typed into a field is no press; these are, wherever they go.
_COUNT = """() => {
    // A window may outlive its first document.
    if (window.counts) return;
    window.counts = true;
    const count = (event) => {
        if (event.isTrusted) sessionStorage.setItem("presses", 1 + Number(sessionStorage.getItem("presses")));
    };
    addEventListener("pointerdown", count, true);
    addEventListener("keydown", (event) => {
        const types = event.target.matches("input:not([type=checkbox], [type=radio]), textarea");
        if (event.key === "Enter" || !types) count(event);
    }, true);
}"""


class Job:
    """A job that begins at the Overview: `presses` are the clicks so far, which the browser itself counts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.add_init_script(f"({_COUNT})()")
        page.goto("/")
        page.evaluate("sessionStorage.removeItem('presses')")

    @property
    def presses(self) -> int:
        """Return how often something was pressed since the Overview."""
        return int(self.page.evaluate("Number(sessionStorage.getItem('presses'))"))

    def filter(self, text: str) -> None:
        """Type into the filter of the page, which a key (`/`) goes to: finding a thing is not counted as a click.

        Wait for the filtered rows, which replace the others: a row could be replaced while it is clicked.
        """
        self.page.get_by_role("searchbox").first.fill(text)
        self.page.wait_for_url(re.compile(r"[?&]q=[^&]"))

    def open_agent(self, key: str) -> None:
        """Go from the Overview to an agent."""
        self.link(key).click()
        self.page.get_by_role("heading", name=key, exact=True).wait_for()

    def link(self, name: str) -> Locator:
        """Find a link of the page by its name, outside the navigation."""
        return self.page.get_by_role("main").get_by_role("link", name=name, exact=True).first
