"""Helpers that fill in and submit an editor's form as a browser would."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from django.http import QueryDict
from django.test import Client

from tests.web import dashboard


class _Form(HTMLParser):
    """Collect the fields that the form with this action would submit unchanged."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action, self.inside = action, False
        self.sent: list[tuple[str, str]] = []
        self.text: tuple[str, str] | None = None
        self.select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.inside = given.get("action") == self.action
        if not self.inside:
            return
        name, kind = given.get("name", ""), given.get("type", "")
        if tag == "input" and name and (kind not in ("checkbox", "radio") or "checked" in given):
            self.sent.append((name, given.get("value", "")))
        elif tag == "textarea":
            self.text = (name, "")
        elif tag == "select":
            self.select = name
        elif tag == "option" and "selected" in given and self.select:
            self.sent.append((self.select, given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self.text:
            self.text = (self.text[0], self.text[1] + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.text:
            name, text = self.text
            # Browsers drop the line break at the start, and send CRLF.
            self.sent.append((name, text.removeprefix("\n").replace("\n", "\r\n")))
            self.text = None
        elif tag == "select":
            self.select = ""
        elif tag == "form":
            self.inside = False


def form(html: str, action: str) -> QueryDict:
    """Return the fields that the form with this action would submit."""
    parser = _Form(action)
    parser.feed(html)
    sent = QueryDict(mutable=True)
    for name, value in parser.sent:
        sent.appendlist(name, value)
    assert sent, f"there is no form for {action}"
    return sent


def submit(browser: Client, page: str, action: str, *, htmx: bool = False, **typed: Any) -> Any:
    """Open a page, fill in its form and submit it; a list sets a field with several values."""
    sent = form(browser.get(page).content.decode(), action)
    for name, value in typed.items():
        sent.setlist(name, value if isinstance(value, list) else [value])
    return _post(browser, action, sent, htmx)


def resubmit(browser: Client, response: Any, action: str, *, htmx: bool = False, **typed: Any) -> Any:
    """Fill in and submit the form of a response."""
    sent = form(response.content.decode(), action)
    for name, value in typed.items():
        sent.setlist(name, value if isinstance(value, list) else [value])
    return _post(browser, action, sent, htmx)


def visible_text(response: Any) -> str:
    """Return the text of a response without tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", dashboard.text(response)).split())


def _post(browser: Client, action: str, sent: QueryDict, htmx: bool) -> Any:
    return browser.post(
        action,
        sent.urlencode(),
        content_type="application/x-www-form-urlencoded",
        headers=dashboard.HTMX if htmx else {},
    )
