"""Why did it not work out with a server? In a sentence for operators, with what the server itself said last."""

from __future__ import annotations

import asyncio

from toolbelt.core import connections, errors
from toolbelt.plugins import lifecycle
from toolbelt.plugins.upstream import cleaning

LONGEST = 1_000


def said(
    error: BaseException | None, reached: connections.Connection, *, http_status: int = 0, last: str = ""
) -> str:
    """Say it. ``last`` is the last line of the server's error output, ``http_status`` that of its last answer."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case None | asyncio.CancelledError():
            told = "The connection ended"
        case TimeoutError():
            told = f"The server did not answer within {reached.timeout:g} s"
        case FileNotFoundError():
            told = (
                f"The program {reached.command!r} was not found, or its directory was not: give its full path, or put"
                " it on the PATH of the server"
            )
        case errors.ToolbeltError():
            told = str(error)
        case _:
            # The client's own errors say what the server, or the client itself, put into words.
            told = str(error) if hasattr(error, "error") else lifecycle.described(error)
    if http_status >= 400:
        told = f"The server answered HTTP {http_status}: {told}"
    told = cleaning.line(told, LONGEST).rstrip(".") + "."
    return f"{told} It wrote last: {last}" if last else told
