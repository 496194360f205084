"""Tests of the plugins' event loop and threads."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from toolbelt.plugins import background, contract


@pytest.fixture
def loop():
    created = background.Loop()
    yield created
    created.close()


async def double(number: int) -> int:
    return number * 2


def test_the_loop_starts_with_its_first_task(loop):
    assert not loop.is_started
    assert loop.run_sync(double(2), 1) == 4
    assert loop.is_started


def test_a_closed_loop_refuses_tasks(loop):
    loop.close()

    with pytest.raises(RuntimeError, match="closed"):
        loop.run_sync(double(2), 1)


def test_closing_the_loop_cancels_running_tasks(loop):
    cancelled, tasks = threading.Event(), list[asyncio.Task[None]]()

    async def wait_forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    async def start_task() -> None:
        tasks.append(asyncio.get_running_loop().create_task(wait_forever()))
        await asyncio.sleep(0)

    loop.run_sync(start_task(), 1)
    loop.close()

    assert cancelled.wait(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires os.fork")
def test_a_forked_child_has_its_own_loop(loop):
    assert loop.run_sync(double(1), 1) == 2
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if loop.run_sync(double(2), 2) == 4 else 1)
        finally:
            # In any case: only the parent may run further tests.
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_plain_function_can_wait_for_an_async_function(loop):
    threads = background.Threads()

    assert loop.run_sync(background.call(threads, lambda: background.wait(double(4))), 1) == 8


def test_waiting_outside_a_plain_function_of_a_plugin_is_an_error(loop):
    awaitable = double(1)
    with pytest.raises(TypeError, match="only works in a plain function"):
        background.wait(awaitable)
    awaitable.close()

    async def wait_on_the_loop() -> Any:
        return background.wait(asyncio.get_running_loop().create_future())

    with pytest.raises(TypeError, match="use await"):
        loop.run_sync(wait_on_the_loop(), 1)


def test_an_awaitable_returned_by_a_plain_function_is_awaited(loop):
    assert loop.run_sync(background.call(background.Threads(), lambda: double(3)), 1) == 6


async def current_thread() -> threading.Thread:
    return threading.current_thread()


def test_tasks_on_a_hosts_loop_run_in_its_thread():
    async def story() -> tuple[threading.Thread, threading.Thread]:
        hosted = background.Loop(asyncio.get_running_loop())
        here = await hosted.run(current_thread(), 1)
        from_a_thread = await asyncio.to_thread(lambda: hosted.run_sync(current_thread(), 1))
        return here, from_a_thread

    assert asyncio.run(story()) == (threading.current_thread(), threading.current_thread())


def test_a_timeout_on_a_hosts_loop_does_not_wait_for_the_cancelled_task():
    cancelled = asyncio.Event()

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
            await asyncio.sleep(60)

    async def story() -> None:
        with pytest.raises(background.DeadlineError):
            await background.Loop(asyncio.get_running_loop()).run(linger(), 0.01)
        await cancelled.wait()

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_hosts_loop_is_not_blocked_and_keeps_running_after_close():
    async def story() -> None:
        hosted = background.Loop(asyncio.get_running_loop())
        with pytest.raises(TypeError, match="cannot wait for itself"):
            hosted.run_sync(current_thread(), 1)
        hosted.close()
        with pytest.raises(RuntimeError, match="closed"):
            await hosted.run(current_thread(), 1)
        await asyncio.sleep(0)

    asyncio.run(story())


def test_one_agents_plain_functions_leave_threads_for_other_agents(loop):
    threads, release = background.Threads(limit=4), threading.Event()
    begun: list[str] = []

    async def call(agent: str, function: Any) -> Any:
        context = contract.CallContext(agent=agent, session="", request_id="", options=None, active_tools={})
        contract.CURRENT_CALL.set(context)
        return await threads.run(function)

    def wait() -> None:
        begun.append("ada")
        release.wait(20)

    async def together() -> Any:
        of_ada = [asyncio.create_task(call("ada", wait)) for _ in range(6)]
        answer = await asyncio.create_task(call("bob", lambda: "answered"))
        count = len(begun)
        release.set()
        await asyncio.gather(*of_ada)
        return answer, count

    assert loop.run_sync(together(), 20) == ("answered", 2)
    assert len(begun) == 6
