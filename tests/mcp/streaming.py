"""Helpers of the tests of streams: changing switches, and reading a stream's opening and its silence."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, Exchange
from toolbelt.control.access import switches

QUIET = 0.3


async def flip(toolkit: str, on: bool | None, agent: str = "ada") -> None:
    await sync_to_async(switches.flip)(SETUP.replace(confirm=True), agent, toolkit, on)


async def read_opening(exchange: Exchange, version: str) -> Any:
    """Return the first message or event of a stream."""
    status, headers = await exchange.started()
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    return await exchange.message() if version == NEW else await exchange.event()


async def is_quiet(exchange: Exchange) -> bool:
    """Return whether no message arrives for a while."""
    try:
        async with asyncio.timeout(QUIET):
            return bool(await exchange.message()) and False
    except TimeoutError:
        return True
