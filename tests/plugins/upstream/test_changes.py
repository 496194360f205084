"""Tests that notifications are received before a server is listed, so that no change is missed in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.plugins.upstream import serving
from toolbelt.core import connections
from toolbelt.plugins.upstream import changes, connection, limits


def test_a_server_is_listened_to_before_it_is_asked() -> None:
    async def asked(address: str) -> None:
        reached = connections.of({"url": address, "headers": {"Authorization": f"Bearer {serving.TOKEN}"}})
        assert reached is not None
        server = connection.Server(reached, environ={})
        await server.tools()
        await server.close()

    serving.asked.clear()
    with serving.served() as address:
        asyncio.run(asked(address))

    asked_for = [method for method in serving.asked if method != "server/discover"]
    assert asked_for[:2] == ["subscriptions/listen", "tools/list"]
    # Then what it has beside, side by side.
    assert {*asked_for[2:]} == {"prompts/list", "resources/list", "resources/templates/list"}


def test_one_that_never_answers_that_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*given: Any) -> None:
        await asyncio.Event().wait()

    async def asked(address: str) -> int:
        reached = connections.of({"url": address, "headers": {"Authorization": f"Bearer {serving.TOKEN}"}})
        assert reached is not None
        server = connection.Server(reached, environ={}, bounds=limits.Limits(subscribe=0.01))
        found = await server.tools()
        await server.close()
        return len(found.tools)

    monkeypatch.setattr(changes, "listen", never)
    with serving.served() as address:
        assert asyncio.run(asked(address)) == 2
