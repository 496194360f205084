"""Tests of logging in and out, the navigation, the theme and the browser's time zone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import accessibility, dashboard, devices
from tests.browser.conftest import PASSWORD, OpensPage

pytestmark = pytest.mark.browser

BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"


@devices.on_phone
def test_login_opens_the_requested_page_and_back_does_not_undo_logging_out(
    open_page: OpensPage,
) -> None:
    page = open_page("/agents/runner/?q=git_", user=None)
    expect(page).to_have_title("Log in · Toolbelt")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("User name")).to_have_value("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="runner")).to_be_visible()
    dashboard.open_account_menu(page).get_by_role("button", name="Log out").click()
    expect(page).to_have_title("Log in · Toolbelt")
    page.go_back()
    expect(page).to_have_title("Log in · Toolbelt")


def test_what_was_typed_survives_a_login_that_expires(open_page: OpensPage) -> None:
    page = open_page("/toolkits/issues/edit/")
    page.get_by_label("Title", exact=True).fill("Issues, typed for long")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", name="Log in again")).to_be_visible()
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Continue where you were?")).to_be_visible()
    expect(page.get_by_label("What you entered").get_by_text("Issues, typed for long")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Issues, typed for long")).to_be_visible()


@devices.on_phone
def test_the_navigation_leads_to_pages_and_the_chosen_theme_stays(open_page: OpensPage) -> None:
    page = open_page("/help/")
    for link, heading in (
        ("Audit log", "Audit log"),
        ("Overview", "Needs attention"),
        ("Help & shortcuts", "Help"),
    ):
        dashboard.navigation(page).get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()

    dark = page.evaluate(BACKGROUND)
    dashboard.open_account_menu(page).get_by_role("radio", name="Light").check(force=True)
    light = page.evaluate(BACKGROUND)
    assert light != dark
    page.goto("/audit/")
    assert page.evaluate(BACKGROUND) == light
    menu = dashboard.open_account_menu(page)
    expect(menu.get_by_role("radio", name="Light")).to_be_checked()
    menu.get_by_role("radio", name="System").check(force=True)
    assert page.evaluate(BACKGROUND) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(BACKGROUND) == light


def test_the_second_page_knows_the_time_zone_of_the_browser(open_page: OpensPage) -> None:
    page = open_page("/audit/", timezone_id="Asia/Tokyo")
    page.goto("/account/")
    expect(page.get_by_role("combobox", name="Time zone")).to_contain_text("Browser: Asia/Tokyo")


@pytest.mark.usefixtures("olive_is_staff")
def test_an_invited_person_chooses_a_password_and_is_logged_out_by_an_administrator(
    open_page: OpensPage,
) -> None:
    page = open_page("/account/confirm/?next=/people/", reduced_motion="reduce")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("User name").fill("kim")
    page.get_by_role("button", name="Create user").click()
    expect(page.get_by_role("heading", name="Invitation for kim")).to_be_visible()
    problems = accessibility.problems(page, "invitation", "main")
    link = page.locator("#link-text").inner_text().strip()

    theirs = open_page("/login/", user=None, reduced_motion="reduce")
    theirs.goto(link)
    problems += accessibility.problems(theirs, "choose a password", "main")
    theirs.get_by_label("New password", exact=True).fill("a quite different horse")
    theirs.get_by_label("Repeat the new password").fill("a quite different horse")
    theirs.get_by_role("button", name="Set password").click()
    theirs.get_by_label("User name").fill("kim")
    theirs.get_by_label("Password").fill("a quite different horse")
    theirs.get_by_role("button", name="Log in").click()
    expect(theirs.get_by_role("heading", name="Overview")).to_be_visible()

    page.goto("/people/")
    page.get_by_text("Account of kim").click()
    problems += accessibility.problems(page, "account of a person", "main")
    page.get_by_role("button", name="Log out everywhere").click()
    page.get_by_role("button", name="Log out", exact=True).click()
    expect(page.get_by_text("kim is logged out on 1 browser.")).to_be_visible()
    theirs.goto("/agents/")
    expect(theirs).to_have_title("Log in · Toolbelt")
    assert problems == []
