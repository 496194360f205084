"""Tests of what the browser tests rely on: the console log notices errors, and reused pages are reset."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import console, page_pool
from tests.browser.conftest import OpensPage

pytestmark = pytest.mark.browser


def test_the_console_log_notices_errors_and_policy_violations(open_page: OpensPage) -> None:
    page = open_page("/help/", expected_errors="Content Security Policy|planted|404")
    log = console.ConsoleLog(page, expected="")
    for script, message in {
        "body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')": "inline style",
        "body.append(Object.assign(document.createElement('script'), {text: '1'}))": "inline script",
        "body.insertAdjacentHTML('beforeend', '<img src=\"/static/no.png\" alt=\"\">')": "404",
        "defaultView.fetch('https://example.com/').catch(() => {})": "Content Security Policy",
    }.items():
        log.messages.clear()
        with page.expect_console_message():
            page.evaluate(f"() => {{ document.{script} }}")
        assert message in " ".join(log.messages)
    with page.expect_event("pageerror"):
        page.evaluate("() => { setTimeout(() => { throw new Error('planted') }) }")
    assert log.messages[-1] == "uncaught: planted"


def emulated_media(page: Page) -> tuple[bool, bool]:
    """Return whether the page prefers dark colors, and reduced motion."""
    dark, still = page.evaluate(
        "['(prefers-color-scheme: dark)', '(prefers-reduced-motion)'].map((query) => matchMedia(query).matches)"
    )
    return dark, still


def test_a_reused_page_has_the_theme_and_motion_that_it_was_opened_with(demo: str, browser: Browser) -> None:
    pool = page_pool.PagePool(browser)
    options: tuple[dict[str, str], ...] = ({}, {"color_scheme": "dark", "reduced_motion": "reduce"})
    for given, initial in zip(options, ((False, False), (True, True)), strict=True):
        page = pool.lend(demo, **given)
        assert emulated_media(page) == initial
        page.emulate_media(
            color_scheme="light" if initial[0] else "dark",
            reduced_motion="no-preference" if initial[1] else "reduce",
        )
        assert emulated_media(page) == (not initial[0], not initial[1])
        pool.take_back(reusable=True)
        assert pool.lend(demo, **given) is page
        assert emulated_media(page) == initial
        pool.take_back(reusable=False)
