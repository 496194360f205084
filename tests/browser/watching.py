"""The errors that a browser reports while a test uses it."""

from __future__ import annotations

import re

from playwright.sync_api import ConsoleMessage, Error, Page

# htmx reports as an error that it dropped a request for a newer one, as happens while typing.
REPLACED = "htmx:(sendAbort|afterRequest),"


class Watch:
    """Listens to one page. ``expects`` is a pattern of complaints that belong to the test."""

    def __init__(self, page: Page, expects: str) -> None:
        self._page = page
        self._expects = f"{REPLACED}|{expects}" if expects else REPLACED
        self.complaints: list[str] = []
        # A policy that is violated is an error in the console, too.
        page.on("console", self._said)
        page.on("pageerror", self._failed)

    def end(self) -> None:
        """Listen no longer."""
        self._page.remove_listener("console", self._said)
        self._page.remove_listener("pageerror", self._failed)

    def _failed(self, error: Error) -> None:
        self._heard(f"uncaught: {error}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._heard(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _heard(self, complaint: str) -> None:
        if not re.search(self._expects, complaint):
            self.complaints.append(complaint)
