"""Helpers that fill an editor's form, as a browser would send it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from django.http import QueryDict
from django.test import Client

from tests.web import acting


class _Form(HTMLParser):
    """Collect what the form ``editor`` (or the page's only one with this action) would send as it stands."""

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
            # As a browser does: without the line break at the start, and with CR and LF.
            self.sent.append((name, text.removeprefix("\n").replace("\n", "\r\n")))
            self.text = None
        elif tag == "select":
            self.select = ""
        elif tag == "form":
            self.inside = False


def form(html: str, action: str) -> QueryDict:
    """Return what the form with this action would send."""
    parser = _Form(action)
    parser.feed(html)
    sent = QueryDict(mutable=True)
    for name, value in parser.sent:
        sent.appendlist(name, value)
    assert sent, f"there is no form for {action}"
    return sent


def send(browser: Client, page: str, action: str, *, htmx: bool = False, **typed: Any) -> Any:
    """Open a page, type into its form, and send it: a list stands for a field that is there several times."""
    sent = form(browser.get(page).content.decode(), action)
    for name, value in typed.items():
        sent.setlist(name, value if isinstance(value, list) else [value])
    return _post(browser, action, sent, htmx)


def go_on(browser: Client, answer: Any, action: str, *, htmx: bool = False, **typed: Any) -> Any:
    """Send the form of an answer."""
    sent = form(answer.content.decode(), action)
    for name, value in typed.items():
        sent.setlist(name, value if isinstance(value, list) else [value])
    return _post(browser, action, sent, htmx)


def words(answer: Any) -> str:
    """Return what a reader sees of an answer."""
    return " ".join(re.sub(r"<[^>]+>", " ", acting.text(answer)).split())


def _post(browser: Client, action: str, sent: QueryDict, htmx: bool) -> Any:
    return browser.post(
        action,
        sent.urlencode(),
        content_type="application/x-www-form-urlencoded",
        headers=acting.HTMX if htmx else {},
    )
