"""Expensive values are computed once, and the cache stays within its limit."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from toolbelt.runtime import byte_cache


@dataclass(frozen=True)
class Thing:
    """Something of a size."""

    size: int


def test_things_that_were_not_asked_for_make_room():
    """Three things, and room for two: the one in the middle was not asked for again."""

    async def main() -> tuple[list[object], int]:
        things: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(250)
        for place in ("one", "two"):
            await things.get_or_compute(place, lambda: Thing(100))
        things.get("one")
        await things.get_or_compute("three", lambda: Thing(100))
        await asyncio.sleep(0)
        return list(things), things.size

    assert asyncio.run(main()) == (["one", "three"], 200)


def test_all_who_wait_get_the_one_that_was_made():
    made = []
    go_on = threading.Event()

    def make() -> Thing:
        go_on.wait(10)
        made.append(Thing(1))
        return made[-1]

    async def main() -> list[Thing]:
        things: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(10)
        waiting = [asyncio.create_task(things.get_or_compute("one", make)) for _ in range(3)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == made * 3
    assert len(made) == 1


def test_what_could_not_be_made_is_not_kept_and_is_tried_again():
    def fail() -> Thing:
        raise ValueError("no")

    async def main() -> Thing:
        things: byte_cache.ByteCache[Thing] = byte_cache.ByteCache(10)
        with pytest.raises(ValueError, match="no"):
            await things.get_or_compute("one", fail)
        return await things.get_or_compute("one", lambda: Thing(2))

    assert asyncio.run(main()) == Thing(2)
