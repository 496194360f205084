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
    assert loop.run_sync(double(2), 1) == 4
    assert loop.is_started


def test_after_its_end_nothing_is_taken(loop):
    loop.close()

    with pytest.raises(RuntimeError, match="closed"):
        loop.run_sync(double(2), 1)


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

    loop.run_sync(begin(), 1)
    loop.close()

    assert told.wait(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_after_a_fork_the_child_has_a_loop_of_its_own(loop):
    assert loop.run_sync(double(1), 1) == 2
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if loop.run_sync(double(2), 2) == 4 else 1)
        finally:
            # Whatever happens: the tests go on in the parent alone.
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_plain_function_may_wait_for_an_async_one(loop):
    threads = background.Threads()

    assert loop.run_sync(background.call(threads, lambda: background.wait(double(4))), 1) == 8


def test_waiting_is_for_plain_functions_of_plugins_alone(loop):
    waiting = double(1)
    with pytest.raises(TypeError, match="only works in a plain function"):
        background.wait(waiting)
    waiting.close()

    async def wait_on_the_loop() -> Any:
        return background.wait(asyncio.get_running_loop().create_future())

    with pytest.raises(TypeError, match="use await"):
        loop.run_sync(wait_on_the_loop(), 1)


def test_a_plain_function_that_gives_an_awaitable_is_awaited(loop):
    assert loop.run_sync(background.call(background.Threads(), lambda: double(3)), 1) == 6


async def where() -> threading.Thread:
    return threading.current_thread()


def test_on_a_loop_that_somebody_else_runs_nothing_takes_another_thread():
    async def ask() -> tuple[threading.Thread, threading.Thread]:
        hosted = background.Loop(asyncio.get_running_loop())
        here = await hosted.run(where(), 1)
        from_a_thread = await asyncio.to_thread(lambda: hosted.run_sync(where(), 1))
        return here, from_a_thread

    assert asyncio.run(ask()) == (threading.current_thread(), threading.current_thread())


def test_on_a_loop_that_somebody_else_runs_nobody_waits_longer_than_they_want():
    cancelled = asyncio.Event()

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
            await asyncio.sleep(60)

    async def ask() -> None:
        with pytest.raises(background.LateError):
            await background.Loop(asyncio.get_running_loop()).run(linger(), 0.01)
        await cancelled.wait()

    asyncio.run(asyncio.wait_for(ask(), 20))


def test_a_loop_that_somebody_else_runs_is_not_blocked_and_goes_on_after_the_end():
    async def ask() -> None:
        hosted = background.Loop(asyncio.get_running_loop())
        with pytest.raises(TypeError, match="cannot wait for itself"):
            hosted.run_sync(where(), 1)
        hosted.close()
        with pytest.raises(RuntimeError, match="closed"):
            await hosted.run(where(), 1)
        await asyncio.sleep(0)

    asyncio.run(ask())
