"""An open page is notified of changes while its login is valid, and polls if streaming is not possible."""

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
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
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
        await self._left
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            self._said.put_nowait(message["body"])

    async def hear(self) -> tuple[str, int]:
        """Return the next event: its kind, and the revision."""
        kind, data = (await self._said.get()).decode().strip().split("\n")
        return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))["revision"]

    async def hear_a_sign(self) -> bytes:
        return await self._said.get()

    def leave(self) -> None:
        self._left.set_result(None)


class Opened:
    """Streams of one server, and who listens to them."""

    def __init__(self, silence: float) -> None:
        self.streams = streams.Streams(ASGIHandler(), silence)
        self._tasks: list[asyncio.Task[None]] = []

    def open(self, cookie: str, query: str = "") -> Page:
        page = Page(cookie, query)
        self._tasks.append(asyncio.create_task(self.streams.answer(page.scope, page.receive, page.send)))
        return page

    async def ended(self) -> None:
        """Wait until all streams are."""
        await asyncio.gather(*self._tasks)


@pytest.fixture
def cookie(stored: None) -> str:
    return _log_in(logins.User.objects.create_user("olive"))


def _log_in(user: logins.User) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


def run(story: Callable[[Opened], Awaitable[Any]], silence: float = 1000) -> Any:
    async def main() -> Any:
        try:
            async with asyncio.timeout(20):
                return await story(Opened(silence))
        finally:
            await feed.close()

    return asyncio.run(main())


def flip(agent: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(SETUP.replace(confirm=True), agent, "reading", on)


def test_a_page_of_one_agent_hears_of_it_and_a_page_of_all_hears_of_all(cookie):
    async def story(opened: Opened) -> list[Any]:
        ada, everyone = opened.open(cookie, "agent=ada"), opened.open(cookie)
        kinds = {(await ada.hear())[0], (await everyone.hear())[0]}
        await concurrently.do(flip("bob", False))
        of_bob = await everyone.hear()
        await concurrently.do(flip("ada", True))
        of_ada = await ada.hear()
        assert of_ada == await everyone.hear()
        for page in (ada, everyone):
            page.leave()
        await opened.ended()
        return [kinds, of_ada[1] - of_bob[1], everyone.status, everyone.headers["content-type"]]

    assert run(story) == [{"live"}, 1, 200, "text/event-stream; charset=utf-8"]


def test_the_answer_is_django_s_but_for_its_length_and_whose_it_is(cookie):
    async def story(opened: Opened) -> dict[str, str]:
        page = opened.open(cookie)
        await page.hear()
        page.leave()
        await opened.ended()
        return page.headers

    headers = run(story)
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


def test_what_django_refuses_is_refused(cookie):
    async def story(opened: Opened) -> list[tuple[int, str]]:
        pages = [opened.open(""), opened.open(cookie, "agent=nobody"), opened.open(cookie, "agent=%00")]
        await opened.ended()
        return [(page.status, page.headers.get("location", "")) for page in pages]

    assert run(story) == [(302, "/login/?next=/live/"), (404, ""), (404, "")]


def test_a_page_that_says_no_leaves_no_connection_in_the_thread_that_made_it(cookie):
    """Django makes it in a thread of the event loop's own, which stays: in each of them one more would be open."""

    async def story(opened: Opened) -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(threads := ThreadPoolExecutor(1))
        for _ in range(2):
            opened.open(cookie, "agent=nobody")
            await opened.ended()
        return await loop.run_in_executor(threads, lambda: connection.connection is None)

    assert run(story)


def test_a_stream_that_has_nothing_to_say_gives_a_sign(cookie):
    async def story(opened: Opened) -> list[bytes]:
        page = opened.open(cookie)
        await page.hear()
        signs = [await page.hear_a_sign() for _ in range(2)]
        page.leave()
        await opened.ended()
        return signs

    assert run(story, silence=0) == [b":\n\n"] * 2


@pytest.mark.parametrize(
    "act",
    [
        lambda: Session.objects.all().delete(),
        lambda: logins.User.objects.update(is_active=False),
        lambda: logins.User.objects.update(password="another"),
    ],
    ids=["logged out", "not active", "another password"],
)
def test_a_stream_ends_with_the_login(cookie, act):
    async def story(opened: Opened) -> None:
        page = opened.open(cookie)
        await page.hear()
        await concurrently.do(act)
        await opened.ended()

    run(story, silence=0)


class Restless:
    """A feed in which there is something new at every look."""

    revision = 1

    async def __aenter__(self) -> Restless:
        return self

    async def __aexit__(self, *raised: object) -> None:
        pass

    def __aiter__(self) -> Restless:
        return self

    async def __anext__(self) -> object:
        await asyncio.sleep(0)
        return object()


def test_a_stream_ends_with_the_login_also_when_it_is_never_silent(cookie, monkeypatch):
    monkeypatch.setattr(feed, "all_changes", Restless)

    async def story(opened: Opened) -> None:
        page = opened.open(cookie)
        await page.hear()
        await concurrently.do(Session.objects.all().delete)
        await opened.ended()

    run(story, silence=0)


def test_all_streams_end_when_the_server_is_told_to(cookie):
    async def story(opened: Opened) -> bytes:
        page = opened.open(cookie)
        await page.hear()
        feed.end()
        await opened.ended()
        return await page.hear_a_sign()

    assert run(story) == b""


def test_beyond_so_many_of_one_user_a_page_is_answered_once(cookie, monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_ONE", 1)
    other = _log_in(logins.User.objects.create_user("otto"))

    async def story(opened: Opened) -> list[str]:
        first = opened.open(cookie)
        heard = [(await first.hear())[0]]
        pages = [opened.open(cookie), opened.open(other)]
        heard += [(await page.hear())[0] for page in pages]
        first.leave()
        pages[1].leave()
        await opened.ended()
        # There is room again.
        last = opened.open(cookie)
        heard.append((await last.hear())[0])
        last.leave()
        await opened.ended()
        return heard

    assert run(story) == ["live", "once", "live", "live"]
