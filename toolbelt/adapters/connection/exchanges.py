"""Exchanges with Toolbelt that event loops and threads share.

An exchange is a generator that yields requests to a connection, and receives the responses or Toolbelt's errors.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

# The name of the connection's method, and the arguments.
Request = tuple[str, tuple[Any, ...], Mapping[str, Any]]
Exchange = Generator[Request, Any, Any]


async def run(connection: protocol.Connection, exchange: Exchange) -> Any:
    """Run an exchange on an event loop. Return its result."""
    answer: Any = None
    error: errors.ToolbeltError | None = None
    while True:
        try:
            method, args, more = exchange.throw(error) if error else exchange.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = error = None
        try:
            answer = await getattr(connection, method)(*args, **more)
        except errors.ToolbeltError as raised:
            error = raised


def run_blocking(connection: protocol.BlockingConnection, exchange: Exchange) -> Any:
    """Run an exchange in a thread that may block. Return its result."""
    answer: Any = None
    error: errors.ToolbeltError | None = None
    while True:
        try:
            method, args, more = exchange.throw(error) if error else exchange.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = error = None
        try:
            answer = getattr(connection, method)(*args, **more)
        except errors.ToolbeltError as raised:
            error = raised
