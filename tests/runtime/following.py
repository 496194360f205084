"""Helpers of the feed's tests: a small configuration, and coroutines that follow changes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.api.conftest import BELT, SETUP
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.runtime import feed


@pytest.fixture
def stored(transactional_db: None) -> None:
    belts.import_(SETUP, BELT)


def run(scenario: Callable[[], Awaitable[Any]]) -> Any:
    """Run a scenario on its own event loop, within 20 seconds."""

    async def main() -> Any:
        try:
            async with asyncio.timeout(20):
                return await scenario()
        finally:
            await feed.close()

    return asyncio.run(main())


def flip(agent: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(SETUP.replace(confirm=True), agent, "reading", on)


async def next_change(following: feed.Following) -> list[str]:
    """Return the agents that the next change concerns, and ``catalog`` if it concerns the catalog."""
    changes = await anext(following)
    return sorted(changes.agents | ({"catalog"} if changes.catalog else set()))
