"""Tests that pages fit windows of any size and names of any length, and that dense pages stay dense."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser import dashboard, devices
from tests.browser.conftest import OpensPage
from tests.plugins.upstream import listing
from tests.web import servers
from toolbelt import models
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

CONTROLS_OUTSIDE = """() => {
    const scrolls = (element) => element && (
        ["auto", "scroll"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement)
    );
    return [...document.querySelectorAll("main :is(button, a, input, select, textarea, summary)")]
        .filter((element) => element.checkVisibility() && !scrolls(element.parentElement))
        .filter((element) => {
            const box = element.getBoundingClientRect();
            return box.width > 1 && (box.left < 0 || box.right > innerWidth + 1);
        })
        .map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.mark.usefixtures("olive_is_staff")
def test_names_of_any_length_fit_windows_of_any_width(open_page: OpensPage) -> None:
    long = "a_name_as_long_as_a_name_may_be_which_is_sixty_four_characters_x"
    tool = factories.tool(long, description="Longwords" * 40)
    key = f"{long[:-2]}_y"
    toolkit = factories.toolkit(key, tool, title="Titlewithoutspaces" * 6, policy="Policy" * 60)
    agent = factories.agent("An-agent-with-a-name-of-sixty-four-characters-which-is-the-most.")
    models.ToolkitSwitch.objects.create(agent=agent, toolkit=toolkit, on=True)
    calls.run(agent.key, long, {})
    page = open_page("/agents/", width=360)
    page.get_by_text("Menu", exact=True).click()
    too_wide = [] if devices.fits_window(page) else ["the menu"]
    paths = (
        *(f"/agents/{agent.key}/{tail}" for tail in ("preview/", f"preview/?view=why&tool={long}")),
        *(
            f"/agents/{agent.key}/{tail}"
            for tail in ("sessions/", "history/", "settings/", "bulk/?set=reset")
        ),
        f"/compare/?a=kiosk&b={agent.key}",
        f"/toolkits/{key}/",
        f"/toolkits/{key}/edit/",
        f"/tools/{long}/",
        f"/tools/?q={long}",
        f"/matrix/?q={long[:20]}",
        f"/calls/?view=log&agent={agent.key}",
        "/agents/",
        "/",
        f"/agents/{agent.key}/?open=toolkit-{key}",
    )
    for path in paths:
        page.goto(path)
        too_wide += [] if devices.fits_window(page) else [path]
    dashboard.switch(page, key).click()
    page.get_by_role("dialog").or_(dashboard.notice(page).locator(".toast")).first.wait_for()
    too_wide += [] if devices.fits_window(page) else ["after a flip"]
    for width in (600, 768, 960, 1100, 1320, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        too_wide += [] if devices.fits_window(page) else [f"{width} px"]
    assert too_wide == []


def test_all_controls_can_be_reached_at_200_percent_zoom(open_page: OpensPage) -> None:
    page = open_page("/help/", width=720, device_scale_factor=2)
    for path in (
        "/agents/runner/?open=toolkit-local_git",
        "/matrix/",
        "/toolkits/issues/edit/",
        "/compare/?a=kiosk&b=runner",
    ):
        page.goto(path)
        assert devices.fits_window(page), path
        assert page.evaluate(CONTROLS_OUTSIDE) == [], path


def test_access_review_and_the_navigation_fit_their_screens(open_page: OpensPage) -> None:
    """The Access page takes a screen and a half, 26 tools to review take two, and the navigation fits a low window."""
    servers.add("vault")
    servers.answer(
        *[listing.tool(f"tool_{number:02}", f"Does {number}.") for number in range(26)], name="vault"
    )
    page = open_page("/agents/assistant/")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") <= 1350
    heights = page.locator(".section:visible .section-head").evaluate_all(
        "(rows) => rows.map((row) => row.offsetHeight)"
    )
    assert len(heights) > 10
    assert {height for height in heights if not 44 <= height <= 48} == set()

    page.goto("/review/?plugin=vault")
    rows = page.locator("[data-row]")
    assert rows.count() == 26
    assert rows.last.evaluate("(row) => row.getBoundingClientRect().bottom + scrollY") < 2 * 900

    for height in (800, 600):
        page.set_viewport_size({"width": 1280, "height": height})
        page.goto("/belt/")
        navigation = page.locator(".frame-wide")
        expect(navigation.locator(".you summary")).to_be_in_viewport(ratio=1)
        expect(navigation.get_by_role("link", name="Import & export")).to_be_in_viewport(ratio=1)
        assert page.evaluate("scrollY") == 0
