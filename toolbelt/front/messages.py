"""ASGI messages: types, and reading or discarding a body so that Django can still receive it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class TooMuchError(Exception):
    """A body is larger than allowed."""


class DiscardedBody:
    """Receives an empty body instead of the real body, which is discarded.

    ``pass_on`` receives the real messages instead; both keep track of the body's end.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_asked = self._is_over = False
        # While Django waits for the connection to close, sending the response waits for the end of the body.
        self._lock = asyncio.Lock()

    async def pass_on(self) -> Message:
        """Receive the next real message."""
        message = await self._receive()
        self._is_over = message["type"] != "http.request" or not message.get("more_body")
        return message

    async def receive(self) -> Message:
        """Receive an empty body, and then the messages that follow the real body."""
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.drain()
        return await self._receive()

    async def drain(self) -> None:
        """Discard the rest of the body."""
        async with self._lock:
            while not self._is_over:
                await self.pass_on()


def closing(send: Send, body: DiscardedBody, seconds: float) -> Send:
    """Send a response that closes the connection, after receiving the rest of the body for a while.

    Closing a connection with unread data resets it, and its client might never read the response.
    """

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0].lower() != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        elif not message.get("more_body"):
            await send({**message, "more_body": True})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await body.drain()
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    return sent


async def read(receive: Receive, maximum: int | None = None) -> tuple[bytes, Receive]:
    """Return the body, and a function that receives the same messages again and then those that follow.

    If the client disconnects, the body is what arrived until then. Raise TooMuchError for more than ``maximum`` bytes.
    """
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if maximum is not None and size > maximum:
            raise TooMuchError
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    again = iter(messages)

    async def replayed() -> Message:
        for message in again:
            return message
        return await receive()

    return b"".join([message.get("body", b"") for message in messages]), replayed
