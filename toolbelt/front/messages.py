"""What goes between a server and an application, and how can a body be read that Django may want, too?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def is_too_much(scope: Mapping[str, Any], most: int) -> bool:
    """Say whether a body is announced that nobody will read: of more bytes than that, or of no stated length."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers and b"content-length" not in headers:
        return True
    length = headers.get(b"content-length", b"")
    return length.isdigit() and int(length) > most


def without_body(receive: Receive) -> Receive:
    """Receive an empty body, and then whatever is not a part of one: what comes of it is let go."""
    is_asked = False

    async def received() -> Message:
        nonlocal is_asked
        if not is_asked:
            is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return received


async def read(receive: Receive) -> tuple[bytes, Receive]:
    """Read the body, and give it with what receives the same messages again, and then what follows them.

    The body of a client that went away is what had come of it.
    """
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    again = iter(messages)

    async def replayed() -> Message:
        for message in again:
            return message
        return await receive()

    return b"".join([message.get("body", b"") for message in messages]), replayed
