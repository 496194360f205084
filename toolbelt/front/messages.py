"""What goes between a server and an application, and how can a body be read that Django may want, too?"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class TooMuch(Exception):
    """A body has more bytes than are taken."""


class Discarded:
    """Receives an empty body in place of the one that comes, which is let go.

    ``pass_on`` receives what really comes, as long as nobody minds; both know where the body ends.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_asked = self._is_over = False
        # Django waits for the end of the connection while it answers, and the answer waits for the end of the body.
        self._lock = asyncio.Lock()

    async def pass_on(self) -> Message:
        """Receive the next message, whatever it is."""
        message = await self._receive()
        self._is_over = message["type"] != "http.request" or not message.get("more_body")
        return message

    async def receive(self) -> Message:
        """Receive an empty body, and then whatever follows the real one."""
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.drain()
        return await self._receive()

    async def drain(self) -> None:
        """Let go of the rest of the body."""
        async with self._lock:
            while not self._is_over:
                await self.pass_on()


def closing(send: Send, body: Discarded, seconds: float) -> Send:
    """Send an answer that ends the connection, but let its client send the rest of the body for a while first.

    A connection that ends with something unread is reset, and its client might never read the answer.
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


async def read(receive: Receive, most: int | None = None) -> tuple[bytes, Receive]:
    """Read the body, and give it with what receives the same messages again, and then what follows them.

    The body of a client that went away is what had come of it. Raises TooMuch for more than ``most`` bytes.
    """
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if most is not None and size > most:
            raise TooMuch
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    again = iter(messages)

    async def replayed() -> Message:
        for message in again:
            return message
        return await receive()

    return b"".join([message.get("body", b"") for message in messages]), replayed
