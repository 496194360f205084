"""Tests of logging in, navigating, choosing a theme, and logging out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import PASSWORD, OpensPage

pytestmark = pytest.mark.browser

GROUND = "getComputedStyle(document.documentElement).backgroundColor"


@looks.with_scripts
def test_one_comes_in_and_goes_out(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_", who=None)
    expect(page).to_have_title("Log in · Toolbelt")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("User name")).to_have_value("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="runner")).to_be_visible()
    operating.your_menu(page).get_by_role("button", name="Log out").click()
    expect(page).to_have_title("Log in · Toolbelt")
    page.go_back()
    expect(page).to_have_title("Log in · Toolbelt")


@looks.with_scripts
def test_the_menu_leads_everywhere(open_page: OpensPage) -> None:
    page = open_page("/help/")
    for link, heading in (
        ("Audit log", "Audit log"),
        ("Overview", "Needs attention"),
        ("Help & shortcuts", "Help"),
    ):
        operating.menu(page).get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(page.locator(".layers > li")).to_have_count(11)


@looks.with_scripts
def test_colours_are_chosen_and_kept(open_page: OpensPage, look: looks.Look) -> None:
    page = open_page("/agents/")
    other = "dark" if look.theme == "light" else "light"
    as_the_system = page.evaluate(GROUND)
    menu = operating.your_menu(page)
    menu.get_by_role("radio", name=other.title()).check(force=True)
    chosen = page.evaluate(GROUND)
    assert chosen != as_the_system
    page.goto("/audit/")
    assert page.evaluate(GROUND) == chosen
    menu = operating.your_menu(page)
    expect(menu.get_by_role("radio", name=other.title())).to_be_checked()
    menu.get_by_role("radio", name="System").check(force=True)
    assert page.evaluate(GROUND) == as_the_system
    page.emulate_media(color_scheme="dark" if look.theme == "light" else "light")
    assert page.evaluate(GROUND) == chosen
