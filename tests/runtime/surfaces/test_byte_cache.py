"""Tests that the cache computes each value once and stays within its size limit."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from toolbelt.runtime.surfaces import byte_cache


@dataclass(frozen=True)
class Thing:
    """A value with a size."""

    size: int


def test_the_least_recently_used_value_is_evicted():
    """With three values and room for two, the second is evicted, because it was not requested again."""

    async def main() -> tuple[list[object], int]:
        cache: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(250)
        for place in ("one", "two"):
            await cache.get_or_compute(place, lambda: Thing(100))
        cache.get("one")
        await cache.get_or_compute("three", lambda: Thing(100))
        await asyncio.sleep(0)
        return list(cache), cache.size

    assert asyncio.run(main()) == (["one", "three"], 200)


def test_concurrent_requests_share_one_computation():
    values = []
    go_on = threading.Event()

    def make() -> Thing:
        go_on.wait(10)
        values.append(Thing(1))
        return values[-1]

    async def main() -> list[Thing]:
        cache: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(10)
        waiting = [asyncio.create_task(cache.get_or_compute("one", make)) for _ in range(3)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == values * 3
    assert len(values) == 1


def test_a_failed_computation_is_not_cached():
    def fail() -> Thing:
        raise ValueError("no")

    async def main() -> Thing:
        cache: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(10)
        with pytest.raises(ValueError, match="no"):
            await cache.get_or_compute("one", fail)
        return await cache.get_or_compute("one", lambda: Thing(2))

    assert asyncio.run(main()) == Thing(2)
