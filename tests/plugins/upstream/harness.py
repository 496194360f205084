"""A harness for a connection to a scripted server."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.plugins.upstream import scripting
from toolbelt.core import connections
from toolbelt.core.imported import importing
from toolbelt.plugins.upstream import calling, connection
from toolbelt.plugins.upstream import limits as bounds

T = TypeVar("T")
TIMEOUT_SECONDS = 60


class ConnectionHarness:
    """A connection to a scripted server during a test, and the lists that it has reported."""

    def __init__(self, script: scripting.Script, **options: Any) -> None:
        settings = connections.of(script.connection)
        assert settings is not None
        limits = options.pop("limits", bounds.Limits(first_pause=60.0))
        environ, sleep = options.pop("environ", {}), options.pop("sleep", asyncio.sleep)
        self.lists: asyncio.Queue[importing.ServerListing] = asyncio.Queue()
        self.server = connection.Server(
            dataclasses.replace(settings, **options),
            environ=environ,
            on_list=self.lists.put_nowait,
            bounds=limits,
            sleep=sleep,
        )

    def run(self, story: Callable[[connection.Server], Awaitable[T]]) -> T:
        return run(self.server, story)


def run(server: connection.Server, story: Callable[[connection.Server], Awaitable[T]]) -> T:
    """Run a story with a server, and close its connection."""

    async def run_and_close() -> T:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await story(server)
        finally:
            await server.close()

    return asyncio.run(run_and_close())


async def call(server: connection.Server, name: str, arguments: Any, **more: Any) -> Any:
    """Return the result of a call of a tool, or of another request."""
    return await calling.run(server, calling.Request(name=name, arguments=arguments, **more))


def text(result: Any) -> str:
    return str(result["content"][0]["text"])
