"""The event streams that notify open pages of the dashboard of changes.

Django answers the request like any other (`toolbelt.web.kit.live.stream`): it checks permissions and the agent, and
sends the headers and the revision. The stream then continues without Django, so that it needs neither a thread nor a
database connection; its login is checked periodically. If there are too many streams, only Django's response is sent,
and the page polls.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import urllib.parse
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.http import parse_cookie

from toolbelt.core import limits
from toolbelt.front import messages
from toolbelt.runtime import feed
from toolbelt.web.kit import live

SILENCE = limits.KEEP_ALIVE_SECONDS
# The maximum number of open streams per user, and per process.
MAX_PER_ONE, MAX_COUNT = 20, 2000

_BODY = "http.response.body"


def is_here(scope: Mapping[str, Any]) -> bool:
    """Return whether this is a request for a stream."""
    return bool(scope["type"] == "http" and scope["path"] == live.PATH and scope["method"] == "GET")


class Streams:
    """The streams of one process."""

    def __init__(self, django: messages.Application, silence: float | None = None) -> None:
        self._django = django
        self._silence = SILENCE if silence is None else silence
        self._open: collections.Counter[str] = collections.Counter()

    async def answer(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Answer a request for :data:`live.PATH`."""
        answered = await _response_of(self._django, scope)
        start = answered[0]
        headers = [(bytes(name), bytes(value)) for name, value in start["headers"]]
        values = {name.lower(): value.decode("latin-1") for name, value in headers}
        user = values.get(live.USER.lower().encode(), "")
        without_user = [
            (name, value) for name, value in headers if name.lower() != live.USER.lower().encode()
        ]
        if start["status"] != 200 or not user or self._is_too_many(user):
            await send({**start, "headers": without_user})
            for message in answered[1:]:
                await send(message)
            return
        self._open[user] += 1
        try:
            begin = [pair for pair in without_user if pair[0].lower() != b"content-length"]
            await send({**start, "headers": begin})
            async with contextlib.aclosing(self._events(scope, receive, user)) as events:
                async for event in events:
                    await send({"type": _BODY, "body": event, "more_body": True})
            await send({"type": _BODY, "body": b""})
        finally:
            self._open[user] -= 1
            # Removes users without streams.
            self._open += collections.Counter()

    def _is_too_many(self, user: str) -> bool:
        return self._open[user] >= MAX_PER_ONE or self._open.total() >= MAX_COUNT

    async def _events(
        self, scope: dict[str, Any], receive: messages.Receive, user: str
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of the stream until the client disconnects, the login ends or the server stops."""
        query = urllib.parse.parse_qs(scope["query_string"].decode("latin-1"))
        agent = query.get("agent", [""])[-1]
        cookies = b"; ".join([value for name, value in scope["headers"] if name == b"cookie"])
        session_key = live.session_key(parse_cookie(cookies.decode("latin-1")))
        gone = asyncio.create_task(_gone(receive))
        async with feed.changes(agent) if agent else feed.all_changes() as changes:
            turn = asyncio.ensure_future(anext(changes, None))
            clock = asyncio.get_running_loop().time
            ask_at = clock() + self._silence
            try:
                yield live.event("live", changes.revision)
                while True:
                    left = max(0.0, ask_at - clock())
                    await asyncio.wait({gone, turn}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if gone.done():
                        return
                    # By the clock, and not only when the stream is silent, because it may never be.
                    if clock() >= ask_at:
                        if not await _is_still_in(session_key, user):
                            return
                        ask_at = clock() + self._silence
                        yield b":\n\n"
                    if turn.done():
                        if turn.result() is None:
                            return
                        turn = asyncio.ensure_future(anext(changes, None))
                        yield live.event("live", changes.revision)
            finally:
                for task in (gone, turn):
                    task.cancel()


_is_still_in = sync_to_async(live.is_still_in, thread_sensitive=False)


async def _response_of(django: messages.Application, scope: dict[str, Any]) -> list[messages.Message]:
    """Return the messages that Django sends. Disconnects are not passed to Django, because they are handled here."""
    sent: list[messages.Message] = []
    body: list[messages.Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> messages.Message:
        if body:
            return body.pop()
        never: asyncio.Future[messages.Message] = asyncio.get_running_loop().create_future()
        return await never

    async def send(message: messages.Message) -> None:
        sent.append(message)

    await django(scope, receive, send)
    return sent


async def _gone(receive: messages.Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
