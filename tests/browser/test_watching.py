"""Tests that a test hears what the browser complains of."""

from __future__ import annotations

import pytest

from tests.browser import watching
from tests.browser.conftest import OpensPage

pytestmark = pytest.mark.browser


def test_what_the_browser_complains_of_is_heard(open_page: OpensPage) -> None:
    page = open_page("/help/", expects="Content Security Policy|planted|404")
    watch = watching.Watch(page, expects="")
    for planted, complaint in {
        "body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')": "inline style",
        "body.append(Object.assign(document.createElement('script'), {text: '1'}))": "inline script",
        "body.insertAdjacentHTML('beforeend', '<img src=\"/static/no.png\" alt=\"\">')": "404",
        "defaultView.fetch('https://example.com/').catch(() => {})": "Content Security Policy",
    }.items():
        watch.complaints.clear()
        with page.expect_console_message():
            page.evaluate(f"() => {{ document.{planted} }}")
        assert complaint in " ".join(watch.complaints)
    with page.expect_event("pageerror"):
        page.evaluate("() => { setTimeout(() => { throw new Error('planted') }) }")
    assert watch.complaints[-1] == "uncaught: planted"
