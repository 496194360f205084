"""Tests of windows that are kept between tests."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import windows

pytestmark = pytest.mark.browser


def media(page: Page) -> tuple[bool, bool]:
    """Return whether the page is dark, and whether it may move."""
    dark, still = page.evaluate(
        "['(prefers-color-scheme: dark)', '(prefers-reduced-motion)'].map((query) => matchMedia(query).matches)"
    )
    return dark, not still


@pytest.mark.parametrize(
    ("options", "first"),
    [({}, (False, True)), ({"color_scheme": "dark", "reduced_motion": "reduce"}, (True, False))],
    ids=["as usual", "dark and still"],
)
def test_a_window_forgets_the_colours_and_motion_of_the_test_before(
    demo: str, browser: Browser, options: dict[str, str], first: tuple[bool, bool]
) -> None:
    kept = windows.Windows(browser)
    page = kept.lend(demo, **options)
    assert media(page) == first
    page.emulate_media(
        color_scheme="light" if first[0] else "dark", reduced_motion="reduce" if first[1] else "no-preference"
    )
    assert media(page) == (not first[0], not first[1])
    kept.take_back(clean=True)
    assert kept.lend(demo, **options) is page
    assert media(page) == first
    kept.take_back(clean=False)
