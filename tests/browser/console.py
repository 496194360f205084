"""The errors and warnings that a browser reports while a test uses it."""

from __future__ import annotations

import re

from playwright.sync_api import ConsoleMessage, Error, Page

# htmx logs an error when it drops a request for a newer one, as it does while a user types.
SUPERSEDED = "htmx:(sendAbort|afterRequest),"


class ConsoleLog:
    """The messages of one page, except those that match the pattern ``expected``."""

    def __init__(self, page: Page, expected: str) -> None:
        self._page = page
        self._expected = f"{SUPERSEDED}|{expected}" if expected else SUPERSEDED
        self.messages: list[str] = []
        # Violations of the Content Security Policy are console errors, too.
        page.on("console", self._on_console)
        page.on("pageerror", self._on_page_error)

    def stop(self) -> None:
        """Stop listening to the page."""
        self._page.remove_listener("console", self._on_console)
        self._page.remove_listener("pageerror", self._on_page_error)

    def _on_page_error(self, error: Error) -> None:
        self._add(f"uncaught: {error}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._add(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _add(self, message: str) -> None:
        if not re.search(self._expected, message):
            self.messages.append(message)
