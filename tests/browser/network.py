"""Control over when responses and timers arrive at a page, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import APIResponse, Page, Request, Route

POLL_MS = 20
TIMEOUT_MS = 20_000


class HeldResponses:
    """The responses to a page's requests with one method: the server has responded, and the page waits for it."""

    def __init__(self, page: Page, method: str) -> None:
        self._page = page
        self._method = method
        self._held: list[tuple[Route, APIResponse]] = []
        self._is_holding = True
        page.route("**/*", self._hold)

    @property
    def count(self) -> int:
        """Return how many responses have been held."""
        return len(self._held)

    def wait_for(self, count: int) -> None:
        """Wait until the server has responded to ``count`` requests."""
        for _ in range(TIMEOUT_MS // POLL_MS):
            if self.count >= count:
                return
            self._page.wait_for_timeout(POLL_MS)
        raise AssertionError(f"{self.count} requests instead of {count}")

    def deliver(self, number: int) -> None:
        """Deliver a response, counted from 0 in the order of the requests, once the server has responded."""
        self.wait_for(number + 1)
        route, response = self._held[number]
        route.fulfill(response=response)

    def drop(self, number: int) -> None:
        """Reset the connection instead of delivering a response, once the server has responded."""
        self.wait_for(number + 1)
        self._held[number][0].abort("connectionreset")

    def stop_holding(self) -> None:
        """Let all further responses through."""
        self._is_holding = False

    def _hold(self, route: Route) -> None:
        # The stream of revisions is no response to an operator, and browsers request icons whenever they like.
        is_other = any(part in route.request.url for part in ("/live/", "/static/"))
        if not self._is_holding or is_other or route.request.method != self._method:
            route.fallback()
            return
        self._held.append((route, route.fetch(max_redirects=0)))


@contextmanager
def recorded_requests(page: Page, part: str) -> Iterator[list[str]]:
    """Yield a list that collects, of each URL that the page gets and that contains ``part``, what follows it."""
    tails: list[str] = []

    def record(request: Request) -> None:
        _, separator, tail = request.url.partition(part)
        if separator and request.method == "GET":
            tails.append(tail)

    page.on("request", record)
    yield tails
    page.remove_listener("request", record)


def shorten_timers(page: Page) -> None:
    """Let timers of four seconds and more that the page starts from now on run after a tenth of a second."""
    page.evaluate(
        """() => {
            const setTimer = window.setTimeout;
            window.setTimeout = (run, delay, ...rest) => setTimer(run, delay >= 4000 ? 100 : delay, ...rest);
        }"""
    )
