"""Tests that an open page is notified of changes while its login is valid, and polls if it cannot stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.contrib.sessions.models import Session
from django.core.handlers.asgi import ASGIHandler
from django.db import connection
from django.test import Client

from tests import concurrently
from tests.api.conftest import SETUP
from toolbelt.control.access import switches
from toolbelt.front import event_stream as streams
from toolbelt.runtime import feed
from toolbelt.web.kit import live


class Page:
    """A page that listens to a stream."""

    def __init__(self, cookie: str, query: str = "", path: str = live.PATH) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self._disconnected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"testserver"), (b"cookie", f"a=b; sessionid={cookie}".encode())],
            "client": ("192.0.2.7", 50000),
            "server": ("testserver", 80),
        }

    async def receive(self) -> dict[str, Any]:
        await self._disconnected
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            self._received.put_nowait(message["body"])

    async def receive_event(self) -> tuple[str, int]:
        """Return the kind and the revision of the next event."""
        kind, data = (await self._received.get()).decode().strip().split("\n")
        return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))["revision"]

    async def receive_raw(self) -> bytes:
        return await self._received.get()

    def disconnect(self) -> None:
        self._disconnected.set_result(None)


class OpenStreams:
    """The event streams of one server and the pages that listen to them."""

    def __init__(self, silence: float) -> None:
        self.streams = streams.Streams(ASGIHandler(), silence)
        self._tasks: list[asyncio.Task[None]] = []

    def open(self, cookie: str, query: str = "") -> Page:
        page = Page(cookie, query)
        self._tasks.append(asyncio.create_task(self.streams.answer(page.scope, page.receive, page.send)))
        return page

    async def ended(self) -> None:
        """Wait until all streams have ended."""
        await asyncio.gather(*self._tasks)


@pytest.fixture
def cookie(stored: None) -> str:
    return _log_in(logins.User.objects.create_user("olive"))


def _log_in(user: logins.User) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


def run(scenario: Callable[[OpenStreams], Awaitable[Any]], silence: float = 1000) -> Any:
    async def main() -> Any:
        try:
            async with asyncio.timeout(20):
                return await scenario(OpenStreams(silence))
        finally:
            await feed.close()

    return asyncio.run(main())


def flip(agent: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(SETUP.replace(confirm=True), agent, "reading", on)


def test_an_agent_page_gets_its_events_and_an_overview_page_gets_all(cookie):
    async def scenario(opened: OpenStreams) -> list[Any]:
        ada, everyone = opened.open(cookie, "agent=ada"), opened.open(cookie)
        kinds = {(await ada.receive_event())[0], (await everyone.receive_event())[0]}
        await concurrently.do(flip("bob", False))
        of_bob = await everyone.receive_event()
        await concurrently.do(flip("ada", True))
        of_ada = await ada.receive_event()
        assert of_ada == await everyone.receive_event()
        for page in (ada, everyone):
            page.disconnect()
        await opened.ended()
        return [kinds, of_ada[1] - of_bob[1], everyone.status, everyone.headers["content-type"]]

    assert run(scenario) == [{"live"}, 1, 200, "text/event-stream; charset=utf-8"]


def test_the_stream_has_django_s_headers_except_length_and_user(cookie):
    async def scenario(opened: OpenStreams) -> dict[str, str]:
        page = opened.open(cookie)
        await page.receive_event()
        page.disconnect()
        await opened.ended()
        return page.headers

    headers = run(scenario)
    browser = Client()
    browser.cookies["sessionid"] = cookie
    answer = browser.get(live.PATH)
    expected = {name.lower(): value for name, value in answer.headers.items()}
    del expected["content-length"], expected[live.USER.lower()]
    own = ("x-request-id", "x-correlation-id")
    assert {k: v for k, v in headers.items() if k not in own} == {
        k: v for k, v in expected.items() if k not in own
    }
    assert headers["x-accel-buffering"] == "no"
    assert headers["cache-control"] == "private, no-store"


def test_a_stream_without_login_or_agent_is_refused(cookie):
    async def scenario(opened: OpenStreams) -> list[tuple[int, str]]:
        pages = [opened.open(""), opened.open(cookie, "agent=nobody"), opened.open(cookie, "agent=%00")]
        await opened.ended()
        return [(page.status, page.headers.get("location", "")) for page in pages]

    assert run(scenario) == [(302, "/login/?next=/live/"), (404, ""), (404, "")]


def test_a_refused_stream_leaves_no_database_connection_open(cookie):
    """Django opens it in a thread of the event loop that persists, so each such thread would keep one open."""

    async def scenario(opened: OpenStreams) -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(threads := ThreadPoolExecutor(1))
        for _ in range(2):
            opened.open(cookie, "agent=nobody")
            await opened.ended()
        return await loop.run_in_executor(threads, lambda: connection.connection is None)

    assert run(scenario)


def test_an_idle_stream_sends_keep_alives(cookie):
    async def scenario(opened: OpenStreams) -> list[bytes]:
        page = opened.open(cookie)
        await page.receive_event()
        keep_alives = [await page.receive_raw() for _ in range(2)]
        page.disconnect()
        await opened.ended()
        return keep_alives

    assert run(scenario, silence=0) == [b":\n\n"] * 2


@pytest.mark.parametrize(
    "act",
    [
        lambda: Session.objects.all().delete(),
        lambda: logins.User.objects.update(is_active=False),
        lambda: logins.User.objects.update(password="another"),
    ],
    ids=["logged out", "not active", "another password"],
)
def test_a_stream_ends_when_the_login_becomes_invalid(cookie, act):
    async def scenario(opened: OpenStreams) -> None:
        page = opened.open(cookie)
        await page.receive_event()
        await concurrently.do(act)
        await opened.ended()

    run(scenario, silence=0)


class BusyFeed:
    """A feed with a change at every read."""

    revision = 1

    async def __aenter__(self) -> BusyFeed:
        return self

    async def __aexit__(self, *raised: object) -> None:
        pass

    def __aiter__(self) -> BusyFeed:
        return self

    async def __anext__(self) -> object:
        await asyncio.sleep(0)
        return object()


def test_a_busy_stream_ends_when_the_login_becomes_invalid(cookie, monkeypatch):
    monkeypatch.setattr(feed, "all_changes", BusyFeed)

    async def scenario(opened: OpenStreams) -> None:
        page = opened.open(cookie)
        await page.receive_event()
        await concurrently.do(Session.objects.all().delete)
        await opened.ended()

    run(scenario, silence=0)


def test_all_streams_end_when_the_server_shuts_down(cookie):
    async def scenario(opened: OpenStreams) -> bytes:
        page = opened.open(cookie)
        await page.receive_event()
        feed.end()
        await opened.ended()
        return await page.receive_raw()

    assert run(scenario) == b""


def test_a_page_over_the_limit_per_user_is_answered_without_a_stream(cookie, monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_ONE", 1)
    other = _log_in(logins.User.objects.create_user("otto"))

    async def scenario(opened: OpenStreams) -> list[str]:
        first = opened.open(cookie)
        heard = [(await first.receive_event())[0]]
        pages = [opened.open(cookie), opened.open(other)]
        heard += [(await page.receive_event())[0] for page in pages]
        first.disconnect()
        pages[1].disconnect()
        await opened.ended()
        # There is room again.
        last = opened.open(cookie)
        heard.append((await last.receive_event())[0])
        last.disconnect()
        await opened.ended()
        return heard

    assert run(scenario) == ["live", "once", "live", "live"]
