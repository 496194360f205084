"""Tests of calls on a connection to a server: what they return, what ends them, and what ends with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.plugins.upstream import scripting
from tests.plugins.upstream.connecting import Using, text
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


def test_a_server_that_dies_during_a_call_fails_it_at_once_and_answers_the_next(
    script: scripting.Script,
) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match="It wrote last: killed by a test"):
            await server.call("die", {})
        assert text(await server.call("echo", {"n": 1})) == '{"n": 1}'

    Using(script).run(story)

    assert script.starts == 2


def test_all_calls_that_wait_fail_when_the_server_dies(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> list[object]:
        calls = server.call("hang", {}), server.call("die", {})
        ended: list[object] = await asyncio.gather(*calls, return_exceptions=True)
        return ended

    for ended in Using(script).run(story):
        assert isinstance(ended, live_connection.UnreachableError)


def test_a_call_that_takes_too_long_is_cancelled(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        with pytest.raises(TimeoutError):
            await server.call("hang", {})
        await server.call("echo", {})

    Using(script, timeout=1).run(story)

    assert script.starts == 1
    assert script.has_heard_of_a_cancellation()


def test_a_server_that_stops_answering_is_restarted(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(TimeoutError):
            await server.call("hang", {})
        await server.call("echo", {})

    Using(script, timeout=1, limits=bounds.Limits(late=1)).run(story)

    assert script.starts == 2


def test_a_caller_that_gives_up_cancels_its_own_request_only(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        impatient = asyncio.ensure_future(server.call("hang", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait({impatient})
        assert impatient.cancelled()
        assert text(await server.call("echo", {"n": 2})) == '{"n": 2}'

    Using(script).run(story)

    assert script.starts == 1


def test_a_refusal_has_the_server_s_own_words(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(contract.ToolError, match=r"^I do not like this.$"):
            await server.call("refuse", {})

    Using(script).run(story)


def test_progress_is_passed_on(script: scripting.Script) -> None:
    steps = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    Using(script).run(lambda server: server.call("progress", {}, progress=progress))

    assert steps == [(1, 2, "step 1"), (2, 2, "step 2")]


def test_many_updates_of_a_resource_are_passed_on_once_per_pause(script: scripting.Script) -> None:
    script.offers({"resources/subscribe": {}, "resources/unsubscribe": {}})
    updated = {"method": "notifications/resources/updated", "params": {"uri": "note://a"}, "times": 2_000}
    pauses_asked: list[float] = []
    heard: asyncio.Queue[float] = asyncio.Queue()
    go_on = asyncio.Semaphore(0)

    async def pause(seconds: float) -> None:
        pauses_asked.append(seconds)
        await go_on.acquire()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.put_nowait(progress)

    async def story(server: connection.Server) -> None:
        following = asyncio.create_task(
            server.call("", {"uri": "note://a"}, method=requests.FOLLOW, progress=hear)
        )
        # The server may not know about the subscription yet.
        while heard.empty():
            await server.call("notify", updated)
        # By now there is more to tell.
        await server.call("notify", updated)
        assert (heard.qsize(), pauses_asked) == (1, [1.0])
        await heard.get()
        go_on.release()
        await heard.get()
        following.cancel()
        await asyncio.wait({following})
        assert len(pauses_asked) == 2
        assert heard.empty()

    Using(script, sleep=pause).run(story)
