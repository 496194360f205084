"""A connection to a scripted server, for the length of a test."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.plugins.upstream import scripting
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, importing
from toolbelt.plugins.upstream import limits as bounds

T = TypeVar("T")
NEVER = 30


class Using:
    """A connection to a scripted server for the length of a test, and the lists that it reported."""

    def __init__(self, script: scripting.Script, **given: Any) -> None:
        settings = connections.of(script.connection)
        assert settings is not None
        limits = given.pop("limits", bounds.Limits(first_pause=60.0))
        environ, sleep = given.pop("environ", {}), given.pop("sleep", asyncio.sleep)
        self.lists: asyncio.Queue[importing.Answer] = asyncio.Queue()
        self.server = connection.Server(
            dataclasses.replace(settings, **given),
            environ=environ,
            on_list=self.lists.put_nowait,
            bounds=limits,
            sleep=sleep,
        )

    def run(self, story: Callable[[connection.Server], Awaitable[T]]) -> T:
        async def whole() -> T:
            try:
                async with asyncio.timeout(NEVER):
                    return await story(self.server)
            finally:
                await self.server.close()

        return asyncio.run(whole())


def text(result: Any) -> str:
    return str(result["content"][0]["text"])
