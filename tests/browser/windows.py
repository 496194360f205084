"""Browser windows of a test's own, without starting a browser for each.

To open a window takes Chromium longer than most pages take it. So windows are kept, by what they were opened with, and
each test gets one that has forgotten what the test before it left there: cookies, storage, permissions, the network,
colours and motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, Dialog, Page

# What each page loads anyhow: a window goes there without another process, and it is idle.
IDLE = "/static/favicon.svg"


@dataclass(frozen=True, slots=True)
class Window:
    """One page in a context of its own: ``at`` which address, opened with which ``options``."""

    page: Page
    at: str
    options: dict[str, Any]

    def is_clean(self) -> bool:
        """Make it as new; say whether that can be done."""
        context = self.page.context
        if self.page.is_closed() or context.pages != [self.page]:
            return False
        context.set_offline(False)
        # A page keeps what it emulates wherever it goes, and has no way back to what its context was opened with.
        self.page.emulate_media(
            color_scheme=self.options.get("color_scheme", "light"),
            reduced_motion=self.options.get("reduced_motion", "no-preference"),
        )
        self.page.unroute_all()
        context.clear_permissions()
        context.clear_cookies()
        self.page.on("dialog", _leave)
        self.page.goto(f"{self.at}{IDLE}")
        self.page.remove_listener("dialog", _leave)
        # By the browser, for the page may run no scripts.
        session = context.new_cdp_session(self.page)
        session.send("Storage.clearDataForOrigin", {"origin": self.at, "storageTypes": "all"})
        session.detach()
        return True


def _key(at: str, options: dict[str, Any]) -> str:
    return repr((at, sorted(options.items())))


def _leave(dialog: Dialog) -> None:
    """Leave an editor whatever is typed in it."""
    dialog.accept()


class Windows:
    """The windows of one browser: each lent to one test at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[Window]] = {}
        self._lent: list[Window] = []

    def lend(self, at: str, **options: Any) -> Page:
        """Return a free window with these options, at this address."""
        kept = self._free.get(_key(at, options))
        if kept:
            window = kept.pop()
        else:
            context = self._browser.new_context(base_url=at, **options)
            window = Window(context.new_page(), at, options)
        self._lent.append(window)
        return window.page

    def take_back(self, *, clean: bool) -> None:
        """Take back all that is lent; close what is not as new again, or was ``clean`` not even for its test."""
        for window in self._lent:
            if clean and window.is_clean():
                self._free.setdefault(_key(window.at, window.options), []).append(window)
            else:
                window.page.context.close()
        self._lent.clear()
