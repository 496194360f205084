"""Control over when responses arrive, and in which order."""

from __future__ import annotations

from playwright.sync_api import APIResponse, Page, Route

# To look again whether something was sent.
MOMENT = 20
PATIENCE = 20_000


class Line:
    """Answers to what a page asks by ``method`` wait on it: the server has answered, and the page is yet to hear."""

    def __init__(self, page: Page, method: str) -> None:
        self._page = page
        self._method = method
        self._held: list[tuple[Route, APIResponse]] = []
        self._is_open = False
        page.route("**/*", self._hold)

    @property
    def sent(self) -> int:
        """Return how much was sent."""
        return len(self._held)

    def wait_for(self, count: int) -> None:
        """Wait until so much was sent, and answered by the server."""
        for _ in range(PATIENCE // MOMENT):
            if self.sent >= count:
                return
            self._page.wait_for_timeout(MOMENT)
        raise AssertionError(f"{self.sent} instead of {count} were sent")

    def deliver(self, number: int) -> None:
        """Let an answer arrive, counted from 0 in the order in which they were asked for."""
        route, answer = self._held[number]
        route.fulfill(response=answer)

    def lose(self, number: int) -> None:
        """Let an answer get lost."""
        self._held[number][0].abort("connectionreset")

    def open(self) -> None:
        """Hold nothing from now on."""
        self._is_open = True

    def _hold(self, route: Route) -> None:
        # What a page hears of others is another line; and a browser asks for an icon when it likes.
        is_other = any(part in route.request.url for part in ("/live/", "/static/"))
        if self._is_open or is_other or route.request.method != self._method:
            route.fallback()
            return
        self._held.append((route, route.fetch(max_redirects=0)))
