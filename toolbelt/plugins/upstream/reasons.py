"""Explanations of failures, for operators, with the last error output of the server."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from toolbelt.core import connections, errors
from toolbelt.core.imported import cleaning
from toolbelt.plugins import lifecycle

MAX_LENGTH = 1_000
MAX_RETRY_AFTER = 40
MAX_FIELDS = 5
UNREADABLE = "The server's answer cannot be read: it is not {}."


def describe(
    error: BaseException | None,
    settings: connections.Connection,
    *,
    http_status: int = 0,
    retry_after: str = "",
    exit_code: int | None = None,
    last: str = "",
) -> str:
    """Return a sentence that explains why a connection failed or ended.

    ``last`` is the last line of the server's output, ``http_status`` the status of its last answer and ``retry_after``
    when it said to try again, and ``exit_code`` that of a program that ended on its own.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case None | asyncio.CancelledError():
            reason = "The connection ended"
        case TimeoutError():
            reason = f"The server did not answer within {settings.timeout:g} s"
        case FileNotFoundError() if os.path.isabs(settings.command):
            reason = (
                f"The program {settings.command!r} does not exist, or its directory does not: install it, or correct"
                " the path"
            )
        case FileNotFoundError():
            reason = (
                f"The program {settings.command!r} was not found, or its directory was not: give its full path, or put"
                " it on the PATH of the server"
            )
        case errors.ToolbeltError():
            reason = str(error)
        case _ if exit_code is not None:
            reason = (
                f"The program ended (exit code {exit_code}) before it answered. Check that the command starts an MCP"
                " server"
            )
        case _ if isinstance(error.__cause__, ConnectionRefusedError):
            reason = (
                f"Nothing answers at {settings.url} (connection refused). Check the address, and that the server"
                " runs"
            )
        case _ if (wrong := _invalid_fields(error)) is not None:
            reason = f"The server's answer is not valid in MCP{wrong}"
        case RuntimeError():
            # The client's own words, about the revision for example.
            reason = str(error) or type(error).__name__
        case _:
            reason = message(error) if hasattr(error, "error") else lifecycle.described(error)
    reason = of_status(http_status, retry_after, reason)
    reason = cleaning.line(reason, MAX_LENGTH).rstrip(".") + "."
    return f"{reason} It wrote last: {last}" if last else reason


def message(error: Any) -> str:
    """Return the message of an error that the server answered, or that the client raised in its place.

    The client quotes its library about an answer that it cannot read: several lines, with the input.
    """
    import mcp_types

    text = str(error)
    if error.error.code != mcp_types.PARSE_ERROR or "validation error" not in text:
        return text
    return UNREADABLE.format("JSON" if "[type=json_invalid" in text else "an MCP message")


def of_status(status: int, retry_after: str, reason: str) -> str:
    """Return the reason, after the HTTP status of the answer if that is an error."""
    if status < 400:
        return reason
    later = cleaning.line(retry_after, MAX_RETRY_AFTER)
    wait = f" (Retry-After: {later})" if later else ""
    return f"The server answered HTTP {status}{wait}: {reason}"


def _invalid_fields(error: BaseException) -> str | None:
    """Return which fields of an answer the client refuses; None for another error."""
    read = getattr(error, "errors", None)
    if not isinstance(error, ValueError) or not callable(read):
        return None
    fields = dict.fromkeys(".".join(map(str, wrong["loc"])) for wrong in read(include_input=False))
    return f" ({', '.join(list(fields)[:MAX_FIELDS])})" if any(fields) else ""
