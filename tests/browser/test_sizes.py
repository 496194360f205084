"""Tests that pages fit windows of any width and names of any length, and that controls are large enough."""

from __future__ import annotations

import pytest

from tests import factories
from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

ACCESS = "/agents/runner/?open=toolkit-local_git"
SOME_OF_EACH_KIND = (
    "/agents/runner/?q=git_status",
    "/",
    "/agents/",
    "/matrix/?q=git",
    "/toolkits/local_git/",
    "/toolkits/issues/edit/",
    "/tools/?q=git_status",
    "/loadouts/secure-review/edit/",
    "/plugins/?q=vault",
    "/compare/?a=kiosk&b=runner",
    "/agents/generalist/settings/",
    "/agents/kiosk/preview/",
    "/agents/omni/history/",
    "/audit/",
    "/calls/",
    "/calls/?view=log",
    "/calls/?view=unused",
    "/belt/",
    "/tokens/",
)


@pytest.mark.usefixtures("trusted_olive")
def test_no_page_is_wider_than_its_window_whatever_things_are_called(open_page: OpensPage) -> None:
    long = "a_name_as_long_as_a_name_may_be_which_is_sixty_four_characters_x"
    tool = factories.tool(long, description="Longwords" * 40)
    key = f"{long[:-2]}_y"
    toolkit = factories.toolkit(key, tool, title="Titlewithoutspaces" * 6, policy="Policy" * 60)
    agent = factories.agent("An-agent-with-a-name-of-sixty-four-characters-which-is-the-most.")
    models.ToolkitSwitch.objects.create(agent=agent, toolkit=toolkit, on=True)
    calls.run(agent.key, long, {})
    of_agent = f"/agents/{agent.key}/?open=toolkit-{key}"
    page = open_page("/agents/", width=360)
    page.get_by_text("Menu", exact=True).click()
    wide = [] if looks.fits(page) else ["the menu"]
    addresses = (
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
        of_agent,
    )
    for address in addresses:
        page.goto(address)
        wide += [] if looks.fits(page) else [address]
    operating.switch(page, key).click()
    page.get_by_role("dialog").or_(operating.notice(page).locator(".toast")).first.wait_for()
    wide += [] if looks.fits(page) else ["a question"]
    for width in (600, 768, 960, 1100, 1320, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        wide += [] if looks.fits(page) else [f"{width} px"]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize(
    "address",
    [
        "/agents/runner/?open=toolkit-local_git",
        "/matrix/",
        "/toolkits/issues/edit/",
        "/compare/?a=kiosk&b=runner",
    ],
)
def test_at_twice_the_size_all_of_it_is_there(open_page: OpensPage, address: str) -> None:
    page = open_page(address, width=720, device_scale_factor=2)
    assert looks.fits(page)
    out = page.evaluate(
        """() => {
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
    )
    assert out == []


@looks.with_scripts
@pytest.mark.usefixtures("trusted_olive")
def test_nothing_is_too_small_for_a_finger(open_page: OpensPage) -> None:
    page = open_page("/")
    small = []
    for address in SOME_OF_EACH_KIND:
        page.goto(address)
        small += [f"{address} {one}" for one in looks.too_small(page)]
    assert not small, "\n".join(small)
