"""What an operator does on a page, on a desktop or a phone, with scripts or without."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import Locator, Page, expect


def section(page: Page, toolkit: str) -> Locator:
    """Find the section of a toolkit."""
    return page.locator(f"[data-section='toolkit-{toolkit}']")


def unfold(page: Page, group: str) -> None:
    """Unfold a group of sections: "off", or "loose"."""
    heading = page.locator(f"#group-{group}")
    if heading.get_attribute("open") is None:
        heading.locator("summary").click()


def switch(page: Page, toolkit: str) -> Locator:
    """Find the switch of a toolkit; what is off is unfolded first."""
    if section(page, toolkit).get_attribute("data-group") == "off":
        unfold(page, "off")
    return section(page, toolkit).get_by_role("switch")


def row(page: Page, toolkit: str, tool: str) -> Locator:
    """Find the row of a tool."""
    return section(page, toolkit).locator("li.tool").filter(has=page.locator(f"[data-tool='{tool}']"))


def choice(page: Page, toolkit: str, tool: str, word: str) -> Locator:
    """Find one of the three choices of a tool: Default, On, Off."""
    return row(page, toolkit, tool).get_by_role("radio", name=re.compile(rf"^{word}\b"))


def choose(page: Page, toolkit: str, tool: str, word: str) -> None:
    """Choose one of the three for a tool; without scripts it has to be saved."""
    choice(page, toolkit, tool, word).check(force=True)
    save(row(page, toolkit, tool))


def show(page: Page, word: str) -> None:
    """Choose what the filter of the Access page shows; on a phone it is behind a button."""
    opener = page.get_by_role("button", name="Filters")
    if opener.is_visible() and not page.locator("#filters:popover-open").count():
        opener.click()
    page.locator("#filter").get_by_role("radio", name=re.compile(rf"^{word}\b")).check(force=True)


def summary(page: Page, toolkit: str) -> Locator:
    """Find what opens a toolkit's tools: it lies below the whole row, so it is pressed with the keyboard here."""
    return section(page, toolkit).locator("summary")


def opened(page: Page, toolkit: str) -> Locator:
    """Open a toolkit's tools; give the section once they are there."""
    found = section(page, toolkit)
    if found.get_attribute("data-group") == "off":
        unfold(page, "off")
    summary(page, toolkit).press("Enter")
    if not runs_scripts(page):
        found.get_by_role("link", name="Show").click()
    found.locator("li.tool").first.wait_for()
    return found


def more(page: Page, toolkit: str) -> Locator:
    """Open what else can be done with a toolkit; give it."""
    section(page, toolkit).locator(".section-head .acts-opener").click()
    return page.locator(".acts-body:popover-open")


def runs_scripts(page: Page) -> bool:
    """Return whether scripts run here."""
    return page.locator("html.js").count() > 0


def save(place: Locator, button: str = "Save") -> None:
    """Press what sends a form where no script does; it is not to be seen where one does."""
    if not runs_scripts(place.page):
        place.get_by_role("button", name=button).click()


def notice(page: Page) -> Locator:
    """Find the notice of what happened."""
    return page.get_by_role("region", name="Notices")


def undo(page: Page) -> None:
    """Take back what the notice tells of."""
    notice(page).get_by_role("button", name="Undo").click()
    expect(notice(page)).to_contain_text("Undone")


def question(page: Page) -> Locator:
    """Find the question that the server asks first: a dialog, or a page of its own."""
    asked = page.get_by_role("dialog") if runs_scripts(page) else page.locator(".card.question")
    expect(asked).to_be_visible()
    return asked


def leave(page: Page) -> None:
    """Answer a question by leaving all as it is."""
    role: Literal["button", "link"] = "button" if runs_scripts(page) else "link"
    question(page).get_by_role(role, name="Cancel").click()


def your_menu(page: Page) -> Locator:
    """Open the menu of the user's own: account, theme, logging out."""
    here = menu(page)
    here.locator(".you > summary").click()
    return here.locator(".you")


def menu(page: Page) -> Locator:
    """Find the menu; where the window is narrow it is opened first."""
    opener = page.locator(".frame-narrow > summary")
    page.locator("header.frame").wait_for()
    if not opener.is_visible():
        return page.locator(".frame-wide")
    opener.click()
    return page.locator(".frame-narrow")


def focus(page: Page) -> str:
    """Return what has the focus: its id, or what a reader would hear of it."""
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
