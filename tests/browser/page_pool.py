"""A pool of browser pages, because opening one takes Chromium longer than most tests use it.

Pages are pooled by the options that they were opened with. Before a page is reused, it is reset: cookies, storage,
permissions, network, color scheme and motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, Dialog, Page

# Every page of the dashboard loads this file, so navigating to it starts no other process, and it runs nothing.
IDLE_PATH = "/static/favicon.svg"


@dataclass(frozen=True, slots=True)
class PooledPage:
    """A page in a context of its own, with the address of its server and the options of its context."""

    page: Page
    base_url: str
    options: dict[str, Any]

    def reset(self) -> bool:
        """Remove all traces of a test; return whether the page can be used again."""
        context = self.page.context
        if self.page.is_closed() or context.pages != [self.page]:
            return False
        context.set_offline(False)
        # A page keeps emulated media when it navigates, and cannot return to the options of its context.
        self.page.emulate_media(
            color_scheme=self.options.get("color_scheme", "light"),
            reduced_motion=self.options.get("reduced_motion", "no-preference"),
        )
        self.page.set_viewport_size(self.options.get("viewport", {"width": 1280, "height": 720}))
        self.page.unroute_all()
        context.clear_permissions()
        context.clear_cookies()
        self.page.on("dialog", _accept)
        self.page.goto(f"{self.base_url}{IDLE_PATH}")
        self.page.remove_listener("dialog", _accept)
        # Through DevTools, because scripts may be disabled in the page.
        session = context.new_cdp_session(self.page)
        session.send("Storage.clearDataForOrigin", {"origin": self.base_url, "storageTypes": "all"})
        session.detach()
        return True


def _key(base_url: str, options: dict[str, Any]) -> str:
    return repr((base_url, sorted(options.items())))


def _accept(dialog: Dialog) -> None:
    """Leave a page although it has unsaved changes."""
    dialog.accept()


class PagePool:
    """The pages of one browser; each is lent to one test at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[PooledPage]] = {}
        self._lent: list[PooledPage] = []

    def lend(self, base_url: str, **options: Any) -> Page:
        """Return a free page with these options, or a new one."""
        free = self._free.get(_key(base_url, options))
        if free:
            pooled = free.pop()
        else:
            context = self._browser.new_context(base_url=base_url, **options)
            pooled = PooledPage(context.new_page(), base_url, options)
        self._lent.append(pooled)
        return pooled.page

    def take_back(self, *, reusable: bool) -> None:
        """Reset all pages that are lent; close those that cannot be reset, or all if they are not ``reusable``."""
        for pooled in self._lent:
            if reusable and pooled.reset():
                self._free.setdefault(_key(pooled.base_url, pooled.options), []).append(pooled)
            else:
                pooled.page.context.close()
        self._lent.clear()
