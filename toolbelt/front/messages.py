"""What goes between a server and an application, and how can a body be read that Django may want, too?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


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
