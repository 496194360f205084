"""Tests that a subscription to notifications begins before a server is listed, so that no change is missed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.plugins.upstream import serving
from toolbelt.core import connections
from toolbelt.plugins.upstream import changes, connection, limits


def test_notifications_are_subscribed_to_before_the_tools_are_listed() -> None:
    async def list_tools(address: str) -> None:
        settings = connections.of({"url": address, "headers": {"Authorization": f"Bearer {serving.TOKEN}"}})
        assert settings is not None
        server = connection.Server(settings, environ={})
        await server.tools()
        await server.close()

    serving.received_methods.clear()
    with serving.served() as address:
        asyncio.run(list_tools(address))

    methods = [method for method in serving.received_methods if method != "server/discover"]
    assert methods[:2] == ["subscriptions/listen", "tools/list"]
    # Then prompts, resources and templates, concurrently.
    assert {*methods[2:]} == {"prompts/list", "resources/list", "resources/templates/list"}


def test_a_server_that_never_confirms_the_subscription_is_listed_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*given: Any) -> None:
        await asyncio.Event().wait()

    async def count_tools(address: str) -> int:
        settings = connections.of({"url": address, "headers": {"Authorization": f"Bearer {serving.TOKEN}"}})
        assert settings is not None
        server = connection.Server(settings, environ={}, bounds=limits.Limits(subscribe=0.01))
        answer = await server.tools()
        await server.close()
        return len(answer.tools)

    monkeypatch.setattr(changes, "listen", never)
    with serving.served() as address:
        assert asyncio.run(count_tools(address)) == 2
