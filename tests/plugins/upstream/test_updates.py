"""Tests that followers of a resource are notified of what a server says about it, asked for or not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from toolbelt.plugins.upstream import limits, updates


@pytest.mark.parametrize(
    ("followed", "updated", "expected"),
    [
        ("file:///notes", "file:///notes", 1),
        ("file:///notes", "file:///notes/today.txt", 1),
        ("file:///notes/", "file:///notes/today.txt", 1),
        ("file:///notes", "file:///notes-old", 0),
        ("file:///notes/today.txt", "file:///notes", 0),
    ],
)
def test_a_part_of_a_resource_notifies_those_who_follow_the_whole(
    followed: str, updated: str, expected: int
) -> None:
    followers, heard = updates.Followers(), []
    followers.join(followed, lambda: heard.append(updated))
    followers.notify(updated)
    assert len(heard) == expected


class ListenlessClient:
    """A client up to 2025-11-25 of a server that announces no subscriptions."""

    server_capabilities = SimpleNamespace(resources=None)

    def listen(self, **_: Any) -> Any:
        from mcp.client import subscriptions

        raise subscriptions.ListenNotSupportedError("2025-11-25")


def test_updates_that_nobody_asked_the_server_for_are_passed_on() -> None:
    followers, heard = updates.Followers(), []

    async def main() -> None:
        live: Any = SimpleNamespace(at_hand=ListenlessClient, leave=asyncio.Event())
        following = asyncio.create_task(
            updates.follow(live, followers, "note://a", lambda: heard.append(1), limits.Limits())
        )
        await asyncio.sleep(0)
        followers.notify("note://a")
        live.leave.set()
        await following
        followers.notify("note://a")

    asyncio.run(main())
    assert heard == [1]
