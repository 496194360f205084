"""The plugins' loop and its threads, on their own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from toolbelt.plugins import background


@pytest.fixture
def loop():
    made = background.Loop()
    yield made
    made.close()


async def double(number: int) -> int:
    return number * 2


def test_nothing_runs_before_something_is_asked(loop):
    assert not loop.is_started
    assert loop.answer_sync(double(2), 1) == 4
    assert loop.is_started


def test_after_its_end_nothing_is_taken(loop):
    loop.close()

    with pytest.raises(RuntimeError, match="closed"):
        loop.answer_sync(double(2), 1)


def test_what_is_still_running_at_the_end_is_cancelled(loop):
    told, kept = threading.Event(), list[asyncio.Task[None]]()

    async def wait_for_ever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            told.set()

    async def begin() -> None:
        kept.append(asyncio.get_running_loop().create_task(wait_for_ever()))
        await asyncio.sleep(0)

    loop.answer_sync(begin(), 1)
    loop.close()

    assert told.wait(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_after_a_fork_the_child_has_a_loop_of_its_own(loop):
    assert loop.answer_sync(double(1), 1) == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if loop.answer_sync(double(2), 2) == 4 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_plain_function_may_wait_for_an_async_one(loop):
    threads = background.Threads()

    assert loop.answer_sync(background.call(threads, lambda: background.wait(double(4))), 1) == 8


def test_waiting_is_for_plain_functions_of_plugins_alone(loop):
    waiting = double(1)
    with pytest.raises(TypeError, match="nothing runs one here"):
        background.wait(waiting)
    waiting.close()

    async def wait_on_the_loop() -> Any:
        return background.wait(asyncio.get_running_loop().create_future())

    with pytest.raises(TypeError, match="write await"):
        loop.answer_sync(wait_on_the_loop(), 1)


def test_a_plain_function_that_gives_an_awaitable_is_awaited(loop):
    assert loop.answer_sync(background.call(background.Threads(), lambda: double(3)), 1) == 6
