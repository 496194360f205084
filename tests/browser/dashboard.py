"""Find and operate the controls of the dashboard, on a desktop or a phone, with JavaScript or without."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import Locator, Page, expect


def section(page: Page, toolkit: str) -> Locator:
    """Return the section of a toolkit."""
    return page.locator(f"[data-section='toolkit-{toolkit}']")


def unfold_group(page: Page, group: str) -> None:
    """Unfold a group of sections: "off" or "loose"."""
    heading = page.locator(f"#group-{group}")
    if heading.get_attribute("open") is None:
        heading.locator("summary").click()


def switch(page: Page, toolkit: str) -> Locator:
    """Return the switch of a toolkit; unfold the group of toolkits that are off if it is there."""
    if section(page, toolkit).get_attribute("data-group") == "off":
        unfold_group(page, "off")
    return section(page, toolkit).get_by_role("switch")


def tool_row(page: Page, toolkit: str, tool: str) -> Locator:
    """Return the row of a tool."""
    return section(page, toolkit).locator("li.tool").filter(has=page.locator(f"[data-tool='{tool}']"))


def override(page: Page, toolkit: str, tool: str, name: str) -> Locator:
    """Return one of the radio buttons of a tool: Default, On, Off."""
    return tool_row(page, toolkit, tool).get_by_role("radio", name=re.compile(rf"^{name}\b"))


def filter_by_state(page: Page, name: str) -> None:
    """Choose which states the Access page shows; on a phone, the filter is behind a button."""
    opener = page.get_by_role("button", name="Filters")
    if opener.is_visible() and not page.locator("#filters:popover-open").count():
        opener.click()
    page.locator("#filter").get_by_role("radio", name=re.compile(rf"^{name}\b")).check(force=True)


def section_summary(page: Page, toolkit: str) -> Locator:
    """Return what opens a toolkit's tools. It lies below the whole row, so tests press it with the keyboard."""
    return section(page, toolkit).locator("summary")


def open_section(page: Page, toolkit: str) -> Locator:
    """Open a toolkit's tools; return the section once they are loaded."""
    place = section(page, toolkit)
    if place.get_attribute("data-group") == "off":
        unfold_group(page, "off")
    section_summary(page, toolkit).press("Enter")
    place.locator("li.tool").first.wait_for()
    return place


def open_actions(page: Page, toolkit: str) -> Locator:
    """Open the menu of a toolkit's actions; return it."""
    section(page, toolkit).locator(".section-head .acts-opener").click()
    return open_menu(page)


def open_menu(page: Page) -> Locator:
    """Return the menu of actions that is open."""
    return page.locator(".acts-body:popover-open")


def runs_scripts(page: Page) -> bool:
    """Return whether the page runs JavaScript."""
    return page.locator("html.js").count() > 0


def notice(page: Page) -> Locator:
    """Return the region with the notices."""
    return page.get_by_role("region", name="Notices")


def undo(page: Page) -> None:
    """Undo the change that the notice is about."""
    notice(page).get_by_role("button", name="Undo").click()
    expect(notice(page)).to_contain_text("Undone")


def confirmation(page: Page) -> Locator:
    """Return the open confirmation: a dialog, or a page of its own without JavaScript."""
    place = page.get_by_role("dialog") if runs_scripts(page) else page.locator(".card.question")
    expect(place).to_be_visible()
    return place


def cancel(page: Page) -> None:
    """Cancel the open confirmation."""
    role: Literal["button", "link"] = "button" if runs_scripts(page) else "link"
    confirmation(page).get_by_role(role, name="Cancel").click()


def open_account_menu(page: Page) -> Locator:
    """Open the menu with the account, the theme and the log-out button; return it."""
    place = navigation(page)
    place.locator(".you > summary").click()
    return place.locator(".you")


def navigation(page: Page) -> Locator:
    """Return the navigation; open it first if the window is narrow."""
    opener = page.locator(".frame-narrow > summary")
    page.locator("header.frame").wait_for()
    if not opener.is_visible():
        return page.locator(".frame-wide")
    opener.click()
    return page.locator(".frame-narrow")


def focused_element(page: Page) -> str:
    """Return the id of the focused element, or its section, role and text, or "nothing"."""
    description: str = page.evaluate(
        """() => {
            const focused = document.activeElement;
            if (!focused || focused === document.body) return "nothing";
            const section = focused.closest("[data-section]")?.dataset.section ?? "";
            const role = focused.getAttribute("role") ?? focused.type ?? focused.localName;
            return focused.id || [section, role, focused.value ?? focused.textContent.trim()].join(" ");
        }"""
    )
    return description
