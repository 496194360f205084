"""Tests that a server that forgot its session, as it does when it is restarted, is there again for the next call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import forgetting, listing, stateful
from toolbelt.core import connections
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import connection, importing, live_connection
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow

T = TypeVar("T")


def using(url: str, story: Callable[[connection.Server], Awaitable[T]]) -> T:
    reached = connections.of({"url": url, "timeout": 20})
    assert reached is not None

    async def whole() -> T:
        server = connection.Server(reached, environ={}, bounds=bounds.Limits(first_pause=0.01))
        try:
            async with asyncio.timeout(60):
                return await story(server)
        finally:
            await server.close()

    return asyncio.run(whole())


def text(result: Any) -> str:
    return str(result["content"][0]["text"])


def test_a_real_server_that_was_killed_and_started_again_answers_the_next_call() -> None:
    async def story(server: connection.Server) -> None:
        assert text(await server.call("count", {})) == "1"
        assert text(await server.call("count", {})) == "2"
        program.kill()
        program.start()
        # The stream of the session is opened again, and refused, at its own pace: before or after this.
        assert text(await server.call("count", {})) == "1"

    with stateful.running() as program:
        using(program.url, story)


def test_a_call_that_finds_its_server_gone_says_why_and_runs_once_it_is_back() -> None:
    async def story(server: connection.Server) -> None:
        await server.call("count", {})
        program.kill()
        with pytest.raises(live_connection.UnreachableError, match="Connect call failed"):
            await server.call("count", {})
        assert server.status().state == "waiting"
        assert "Connect call failed" in server.status().error
        program.start()
        await asyncio.sleep(server.status().pause)
        assert text(await server.call("count", {})) == "1"

    with stateful.running() as program:
        using(program.url, story)


@pytest.mark.parametrize("refusal", forgetting.REFUSALS.values(), ids=forgetting.REFUSALS)
def test_a_call_whose_session_is_refused_begins_a_new_one_and_runs_once(refusal: tuple[int, Any]) -> None:
    async def story(server: connection.Server) -> None:
        await server.call("echo", {})
        # Not by way of the stream, which would tell of it before.
        forgetful.session = ""
        assert text(await server.call("echo", {})) == "echoed"

    with forgetting.served(refusal) as forgetful:
        using(forgetful.url, story)

    assert (forgetful.begun, forgetful.run) == (2, 2)


def test_calls_that_meet_the_restart_together_share_the_new_session() -> None:
    async def story(server: connection.Server) -> None:
        await server.call("echo", {})
        forgetful.session = ""
        await asyncio.gather(*(server.call("echo", {}) for _ in range(5)))

    with forgetting.served(forgetting.REFUSALS["TypeScript SDK"]) as forgetful:
        using(forgetful.url, story)

    assert (forgetful.begun, forgetful.run) == (2, 6)


def test_a_server_that_refuses_every_session_is_asked_twice_and_called_unreachable() -> None:
    async def story(server: connection.Server) -> None:
        await server.call("echo", {})
        forgetful.answer = forgetful.refusal
        with pytest.raises(live_connection.UnreachableError, match="HTTP 404: Session not found"):
            await server.call("echo", {})

    with forgetting.served(forgetting.REFUSALS["TypeScript SDK"]) as forgetful:
        using(forgetful.url, story)

    assert (forgetful.begun, forgetful.run) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"code": -32602, "message": "Invalid arguments: session is required"}),
        (400, {"code": -32603, "message": "The disk is full."}),
        (200, {"code": -32001, "message": "Session not found"}),
    ],
)
def test_a_refusal_of_the_call_itself_is_the_answer_and_is_not_repeated(answer: tuple[int, Any]) -> None:
    async def story(server: connection.Server) -> None:
        forgetful.answer = answer
        with pytest.raises(contract.ToolError, match=str(answer[1]["message"])):
            await server.call("echo", {})
        assert server.status().state == "open"

    with forgetting.served(forgetting.REFUSALS["TypeScript SDK"]) as forgetful:
        using(forgetful.url, story)

    assert forgetful.begun == 1


def test_what_is_allowed_is_asked_again_before_the_call_is_sent_again() -> None:
    asked = []

    async def check() -> None:
        asked.append(forgetful.session)
        if len(asked) == 2:
            raise PermissionError

    async def story(server: connection.Server) -> None:
        await server.tools()
        forgetful.session = ""
        with pytest.raises(PermissionError):
            await server.call("echo", {}, check=check)

    with forgetting.served(forgetting.REFUSALS["TypeScript SDK"]) as forgetful:
        using(forgetful.url, story)

    assert len(asked) == 2
    assert forgetful.run == 0


def test_a_tool_that_is_another_one_after_the_restart_is_not_called() -> None:
    def expected(listed: importing.Answer) -> None:
        if listed.tools[0]["description"] != "Says it again.":
            raise PermissionError

    async def story(server: connection.Server) -> None:
        await server.call("echo", {}, expected=expected)
        forgetful.tools = [listing.tool("echo", "Sends it away.")]
        forgetful.session = ""
        with pytest.raises(PermissionError):
            await server.call("echo", {}, expected=expected)

    with forgetting.served(forgetting.REFUSALS["TypeScript SDK"]) as forgetful:
        using(forgetful.url, story)

    assert forgetful.run == 1


def test_a_refresh_begins_a_new_session_too() -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        forgetful.session = ""
        answer = await server.ask()
        assert (answer.error, len(answer.tools)) == ("", 1)

    with forgetting.served(forgetting.REFUSALS["server-everything"]) as forgetful:
        using(forgetful.url, story)

    assert forgetful.begun == 2


@pytest.mark.parametrize("named", ["TypeScript SDK", "server-everything"])
def test_a_restart_that_the_stream_meets_is_told_without_a_call(named: str) -> None:
    async def story(server: connection.Server) -> None:
        await server.call("echo", {})
        forgetful.forget()
        end = time.monotonic() + 30
        while server.status().state == "open":
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert "no longer knows the session" in server.status().error
        assert text(await server.call("echo", {})) == "echoed"
        assert (server.status().state, server.status().error) == ("open", "")

    with forgetting.served(forgetting.REFUSALS[named]) as forgetful:
        using(forgetful.url, story)
