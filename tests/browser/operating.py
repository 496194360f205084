"""How does an operator find things on the Access page?"""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page


def section(page: Page, toolkit: str) -> Locator:
    """Find the section of a toolkit."""
    return page.locator(f"[data-section='toolkit-{toolkit}']")


def switch(page: Page, toolkit: str) -> Locator:
    """Find the switch of a toolkit."""
    return section(page, toolkit).get_by_role("switch")


def row(page: Page, toolkit: str, tool: str) -> Locator:
    """Find the row of a tool."""
    return section(page, toolkit).locator("li.tool").filter(has=page.locator(f"[data-tool='{tool}']"))


def choice(page: Page, toolkit: str, tool: str, word: str) -> Locator:
    """Find one of the three choices of a tool: Inherit, On, Off."""
    return row(page, toolkit, tool).get_by_role("radio", name=re.compile(rf"^{word}\b"))


def opened(page: Page, toolkit: str) -> Locator:
    """Open a toolkit's tools; give the section once they are there."""
    found = section(page, toolkit)
    found.locator("summary").click()
    found.locator("li.tool").first.wait_for()
    return found


def notice(page: Page) -> Locator:
    """Find the notice of what happened."""
    return page.get_by_role("region", name="Notices")


def focus(page: Page) -> str:
    """Say what has the focus: its id, or what a reader would hear of it."""
    said: str = page.evaluate(
        """() => {
            const here = document.activeElement;
            if (!here || here === document.body) return "nothing";
            const place = here.closest("[data-section]")?.dataset.section ?? "";
            const what = here.getAttribute("role") ?? here.type ?? here.localName;
            return here.id || [place, what, here.value ?? here.textContent.trim()].join(" ");
        }"""
    )
    return said
