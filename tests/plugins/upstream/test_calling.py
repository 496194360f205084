"""Tests of calls on a connection to a server: their results, what ends them, and what they end."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import harness, scripting
from tests.plugins.upstream.harness import ConnectionHarness, text
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import (
    connection,
    live_connection,
    requests,
)
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def test_a_server_that_dies_fails_the_call_immediately_and_is_restarted_for_the_next(
    script: scripting.Script,
) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match="It wrote last: killed by a test"):
            await harness.call(server, "die", {})
        assert text(await harness.call(server, "echo", {"n": 1})) == '{"n": 1}'

    ConnectionHarness(script).run(story)

    assert script.starts == 2


def test_all_waiting_calls_fail_when_the_server_dies(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> list[object]:
        calls = harness.call(server, "hang", {}), harness.call(server, "die", {})
        ended: list[object] = await asyncio.gather(*calls, return_exceptions=True)
        return ended

    for ended in ConnectionHarness(script).run(story):
        assert isinstance(ended, live_connection.UnreachableError)


def test_a_call_that_times_out_is_cancelled_at_the_server(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        with pytest.raises(TimeoutError):
            await harness.call(server, "hang", {})
        await harness.call(server, "echo", {})

    ConnectionHarness(script, timeout=1).run(story)

    assert script.starts == 1
    assert script.has_heard_of_a_cancellation()


def test_a_server_that_stops_answering_is_restarted_for_the_next_call(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(TimeoutError):
            await harness.call(server, "hang", {})
        await harness.call(server, "echo", {})

    ConnectionHarness(script, timeout=1, limits=bounds.Limits(late=1)).run(story)

    assert script.starts == 2


def test_cancelling_a_caller_cancels_only_its_own_request(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        impatient = asyncio.ensure_future(harness.call(server, "hang", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait({impatient})
        assert impatient.cancelled()
        assert text(await harness.call(server, "echo", {"n": 2})) == '{"n": 2}'

    ConnectionHarness(script).run(story)

    assert script.starts == 1


def test_an_error_of_the_server_is_raised_with_its_message(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(contract.ToolError, match=r"^I do not like this.$"):
            await harness.call(server, "refuse", {})

    ConnectionHarness(script).run(story)


@pytest.mark.parametrize("code", [-32000, -32001, -32002, -32003, -32042, -32099, -32700, 0, 1, 404, 2**40])
def test_no_code_of_a_servers_own_error_ends_the_connection(script: scripting.Script, code: int) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(contract.ToolError, match=r"^I do not like this.$"):
            await harness.call(server, "refuse", {"code": code})
        assert text(await harness.call(server, "echo", {"n": 2})) == '{"n": 2}'

    ConnectionHarness(script).run(story)

    assert script.starts == 1


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": None},
        {"content": [None]},
        {"content": [], "structuredContent": None, "isError": None, "_meta": None},
    ],
)
def test_nulls_of_a_result_are_nothing(script: scripting.Script, result: Any) -> None:
    script.results_in(result)

    answer = ConnectionHarness(script).run(lambda server: harness.call(server, "result", {}))

    assert answer["content"] == []
    assert None not in answer.values()


@pytest.mark.parametrize("depth", [190, 260, 600])
def test_a_result_that_is_nested_too_deeply_fails_only_its_own_call(
    script: scripting.Script, depth: int
) -> None:
    deep: dict[str, Any] = {}
    for _ in range(depth):
        deep = {"a": deep}
    script.results_in({"content": [], "structuredContent": deep})

    async def story(server: connection.Server) -> None:
        with contextlib.suppress(contract.ToolError):
            await harness.call(server, "result", {})
        assert text(await harness.call(server, "echo", {"n": 2})) == '{"n": 2}'

    ConnectionHarness(script).run(story)

    assert script.starts == 1


def test_progress_is_forwarded(script: scripting.Script) -> None:
    steps = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    ConnectionHarness(script).run(lambda server: harness.call(server, "progress", {}, progress=progress))

    assert steps == [(1, 2, "step 1"), (2, 2, "step 2")]


def test_many_updates_of_a_resource_are_forwarded_once_per_pause(script: scripting.Script) -> None:
    script.offers({"resources/subscribe": {}, "resources/unsubscribe": {}})
    updated = {"method": "notifications/resources/updated", "params": {"uri": "note://a"}, "times": 2_000}
    pauses: list[float] = []
    received: asyncio.Queue[float] = asyncio.Queue()
    end_of_pause = asyncio.Semaphore(0)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await end_of_pause.acquire()

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        received.put_nowait(progress)

    async def story(server: connection.Server) -> None:
        subscription = asyncio.create_task(
            harness.call(server, "", {"uri": "note://a"}, method=requests.FOLLOW, progress=receive)
        )
        # The server may not know about the subscription yet.
        while received.empty():
            await harness.call(server, "notify", updated)
        # Further updates arrive during the pause.
        await harness.call(server, "notify", updated)
        assert (received.qsize(), pauses) == (1, [1.0])
        await received.get()
        end_of_pause.release()
        await received.get()
        subscription.cancel()
        await asyncio.wait({subscription})
        assert len(pauses) == 2
        assert received.empty()

    ConnectionHarness(script, sleep=pause).run(story)
