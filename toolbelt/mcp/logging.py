"""Forwarding of upstream servers' log messages to MCP clients, by level.

Up to 2025-11-25, a client sets a level for its session. From 2026-07-28, it sends a level with each request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.mcp import elicitation, protocol, request_head
from toolbelt.runtime import threads
from toolbelt.runtime.calls import log_levels

MESSAGE = "notifications/message"
# The maximum number of messages that wait while the level is looked up.
MAX_WAITING = 64


def check_level(level: Any) -> str:
    """Return a level that a client sent. Raise ProtocolError if it does not exist."""
    if level not in log_levels.LEVELS:
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, f"A level must be one of {', '.join(log_levels.LEVELS)}.", status=400
        )
    return str(level)


async def set_level(head: request_head.RequestHead, requested: Any) -> None:
    """Set the level of a client's session. Raise ProtocolError if the level does not exist."""
    level = check_level(requested)
    # Without a session, there is nothing to set the level of.
    if head.client_session:
        await threads.run(log_levels.set_, _key(head), level)


class Log:
    """The log messages of one call. Without ``level``, the session's level is looked up with the first message."""

    def __init__(
        self, head: request_head.RequestHead, send: Callable[[bytes], None], level: str = ""
    ) -> None:
        self._head, self._send, self._level = head, send, level
        self._waiting: list[Mapping[str, Any]] = []
        self._lookup: asyncio.Task[None] | None = None

    def on_message(self, message: Mapping[str, Any]) -> None:
        """Send a message to the client, if its level permits it."""
        if self._level:
            self._send_message(message)
            return
        self._waiting.append(message)
        del self._waiting[:-MAX_WAITING]
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._look_up_level())

    async def settle(self) -> None:
        """Wait until all waiting messages are sent or dropped."""
        if self._lookup is not None:
            await asyncio.wait({self._lookup})

    async def _look_up_level(self) -> None:
        try:
            if self._head.client_session:
                self._level = await threads.run(log_levels.find, _key(self._head))
        finally:
            # While the database is unavailable, the default level applies.
            self._level = self._level or log_levels.DEFAULT
            for message in self._waiting:
                self._send_message(message)
            self._waiting.clear()

    def _send_message(self, message: Mapping[str, Any]) -> None:
        if log_levels.is_delivered(message["level"], self._level):
            self._send(protocol.notification(MESSAGE, message))


def _key(head: request_head.RequestHead) -> str:
    return elicitation.key_of(head, "log level")
