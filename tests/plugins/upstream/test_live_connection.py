"""Tests of what is reported of a failed call on a connection."""

from __future__ import annotations

import asyncio

from mcp.shared.exceptions import MCPError

from toolbelt.core import connections
from toolbelt.core.errors import ToolbeltError
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import last_check, live_connection

SETTINGS = connections.Connection(url="https://tools.test/mcp")


def refusal(status: int, retry_after: str = "") -> ToolbeltError:
    """Return the error of a call that was answered with this status, while another one was answered with 503."""

    async def main() -> ToolbeltError:
        live = live_connection.LiveConnection.begin()
        last = last_check.LastCheck(None)
        last.note_status(status, retry_after)
        live.note_status(503, "9")
        return live.refusal(MCPError(code=1, message="No disk."), SETTINGS, last)

    return asyncio.run(main())


def test_the_status_of_another_call_does_not_end_the_connection() -> None:
    error = refusal(200)
    assert (type(error), str(error)) == (contract.ToolError, "No disk.")


def test_the_status_of_the_call_itself_is_named() -> None:
    error = refusal(502, "5")
    assert isinstance(error, live_connection.UnreachableError)
    assert str(error) == "The server answered HTTP 502 (Retry-After: 5): No disk."
