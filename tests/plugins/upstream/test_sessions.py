"""Tests that a server which has forgotten its session, as after a restart, is reconnected for the next call."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import harness, listing, session_server, stateful
from toolbelt.core import connections
from toolbelt.core.imported import non_tool_importing
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import connection, live_connection, results
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow

T = TypeVar("T")


def run_connected(url: str, story: Callable[[connection.Server], Awaitable[T]]) -> T:
    settings = connections.of({"url": url, "timeout": 20})
    assert settings is not None
    # A probe or a list whose answer is not recognized as its own would wait beyond the test's limit.
    limits = bounds.Limits(first_pause=0.01, listing=3600)
    return harness.run(connection.Server(settings, environ={}, bounds=limits), story)


def text(result: Any) -> str:
    return str(result["content"][0]["text"])


def test_a_restarted_real_server_answers_the_next_call() -> None:
    async def story(server: connection.Server) -> None:
        assert text(await harness.call(server, "count", {})) == "1"
        assert text(await harness.call(server, "count", {})) == "2"
        program.kill()
        program.start()
        # The session's stream reconnects and is refused independently, before or after this call.
        assert text(await harness.call(server, "count", {})) == "1"

    with stateful.running() as program:
        run_connected(program.url, story)


def test_a_call_to_a_stopped_server_fails_with_the_reason_until_it_is_restarted() -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "count", {})
        program.kill()
        with pytest.raises(live_connection.UnreachableError, match="Nothing answers at"):
            await harness.call(server, "count", {})
        assert server.status().state == "waiting"
        assert "Nothing answers at" in server.status().error
        program.start()
        await asyncio.sleep(server.status().pause)
        assert text(await harness.call(server, "count", {})) == "1"

    with stateful.running() as program:
        run_connected(program.url, story)


@pytest.mark.parametrize("refusal", session_server.REFUSALS.values(), ids=session_server.REFUSALS)
def test_a_call_whose_session_is_refused_runs_once_in_a_new_session(refusal: tuple[int, Any]) -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        # The stream stays open: otherwise it would report the restart before the call.
        restarted.session = ""
        answer = await harness.call(server, "echo", {})
        assert [block["text"] for block in answer["content"]] == ["echoed", results.NEW_SESSION]

    with session_server.running(refusal) as restarted:
        run_connected(restarted.url, story)

    assert (restarted.sessions_started, restarted.calls_run) == (2, 2)


def test_concurrent_calls_after_a_restart_share_the_new_session() -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.session = ""
        answers = await asyncio.gather(*(harness.call(server, "echo", {}) for _ in range(5)))
        assert [answer["content"][-1]["text"] for answer in answers] == [results.NEW_SESSION] * 5

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert (restarted.sessions_started, restarted.calls_run) == (2, 6)


def test_a_server_that_refuses_every_session_is_unreachable_after_two_attempts() -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.answer = restarted.refusal
        with pytest.raises(live_connection.UnreachableError, match="HTTP 404: Session not found"):
            await harness.call(server, "echo", {})

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert (restarted.sessions_started, restarted.calls_run) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"code": -32602, "message": "Invalid arguments: session is required"}),
        (400, {"code": -32603, "message": "The disk is full."}),
        (200, {"code": -32602, "message": "The field session is required"}),
        (500, {"code": -32603, "message": "The disk of this session is full."}),
    ],
)
def test_an_error_of_the_call_itself_is_raised_without_a_new_session(answer: tuple[int, Any]) -> None:
    async def story(server: connection.Server) -> None:
        restarted.answer = answer
        with pytest.raises(contract.ToolError, match=str(answer[1]["message"])):
            await harness.call(server, "echo", {})
        assert server.status().state == "open"

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert restarted.sessions_started == 1


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"code": -32603, "message": "Session not found"}),
        (401, "session expired"),
        (400, ""),
        (200, {"code": -32001, "message": "Session not found"}),
        (200, 'event: message\ndata: {"error":"Session not found"}\n\n'),
        (200, session_server.FAILED),
    ],
)
def test_a_tool_that_says_the_same_in_a_session_that_the_server_knows_runs_once(
    answer: tuple[int, Any],
) -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.answer = answer
        with contextlib.suppress(contract.ToolError, live_connection.UnreachableError):
            failed = await harness.call(server, "echo", {})
            assert failed == session_server.FAILED

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert (restarted.sessions_started, restarted.calls_run, restarted.calls_refused) == (1, 1, 1)


def test_a_tool_that_answers_for_a_lost_session_is_not_repeated_and_the_next_call_has_a_new_one() -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.session = ""
        failed = await harness.call(server, "echo", {})
        assert [block["text"] for block in failed["content"]] == ["Session not found", results.NEW_SESSION]
        assert (failed["isError"], restarted.calls_run) == (True, 1)
        assert [block["text"] for block in (await harness.call(server, "echo", {}))["content"]] == ["echoed"]

    with session_server.running((200, session_server.FAILED)) as restarted:
        run_connected(restarted.url, story)

    assert (restarted.sessions_started, restarted.calls_run) == (2, 2)


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"code": -32602, "message": "invalid session parameter 'x'"}),
        (400, {"code": -32602, "message": "Invalid arguments: session is required"}),
        (400, "Unknown field: session"),
        (400, {"code": -32602, "message": "sessionId: Missing required value", "data": "session value"}),
        (500, "The property 'session' is not known"),
        (200, {"code": -32602, "message": "The field session is required"}),
        (400, {"code": -32603, "message": "The disk of this session is full."}),
    ],
)
def test_words_about_an_argument_are_no_reason_to_ask_for_the_session(answer: tuple[int, Any]) -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.answer, read = answer, restarted.lists_read
        with pytest.raises(contract.ToolError):
            await harness.call(server, "echo", {})
        assert restarted.lists_read == read

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)


def test_each_caller_learns_once_that_a_session_is_lost_in_which_it_had_state() -> None:
    async def texts(server: connection.Server, caller: str) -> list[str]:
        answer = await harness.call(server, "echo", {}, caller=caller)
        return [block["text"] for block in answer["content"]]

    async def story(server: connection.Server) -> None:
        await texts(server, "one")
        await texts(server, "two")
        restarted.session = ""
        assert await texts(server, "new") == ["echoed"]
        for caller in ("one", "two"):
            assert await texts(server, caller) == ["echoed", results.NEW_SESSION]
            assert await texts(server, caller) == ["echoed"]
        assert await texts(server, "new") == ["echoed"]

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)


def test_an_error_after_a_restart_says_that_the_session_is_new() -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.session = ""
        restarted.answer = (400, {"code": -32602, "message": "There is no page 3."})
        with pytest.raises(contract.ToolError) as refused:
            await harness.call(server, "echo", {})
        assert str(refused.value).endswith(f"There is no page 3. {results.NEW_SESSION}")
        restarted.answer = None
        assert len((await harness.call(server, "echo", {}))["content"]) == 1

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)


def test_permission_is_checked_again_before_a_call_is_repeated() -> None:
    checks = []

    async def check() -> None:
        checks.append(restarted.session)
        if len(checks) == 2:
            raise PermissionError

    async def story(server: connection.Server) -> None:
        await server.tools()
        restarted.session = ""
        with pytest.raises(PermissionError):
            await harness.call(server, "echo", {}, check=check)

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert len(checks) == 2
    assert restarted.calls_run == 0


def test_a_tool_that_has_changed_after_a_restart_is_not_called() -> None:
    async def story(server: connection.Server) -> None:
        (version,) = non_tool_importing.versions(await server.tools(), "tool", "echo", "")
        await harness.call(server, "echo", {}, version=version)
        restarted.tools = [listing.tool("echo", "Sends it away.")]
        restarted.session = ""
        with pytest.raises(live_connection.UnreachableError, match="as it was approved"):
            await harness.call(server, "echo", {}, version=version)

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        run_connected(restarted.url, story)

    assert restarted.calls_run == 1


def test_a_tool_approved_before_its_schema_was_repaired_is_called() -> None:
    flawed = {**listing.tool("echo"), "inputSchema": {"properties": {"q": {"$ref": "#/$defs/none"}}}}

    async def story(server: connection.Server) -> None:
        for version in non_tool_importing.versions(await server.tools(), "tool", "echo", ""):
            await harness.call(server, "echo", {}, version=version)

    with session_server.running(session_server.REFUSALS["TypeScript SDK"]) as restarted:
        restarted.tools = [flawed]
        run_connected(restarted.url, story)

    assert restarted.calls_run == 2


def test_a_refresh_starts_a_new_session() -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        restarted.session = ""
        answer = await server.ask()
        assert (answer.error, len(answer.tools)) == ("", 1)

    with session_server.running(session_server.REFUSALS["server-everything"]) as restarted:
        run_connected(restarted.url, story)

    assert restarted.sessions_started == 2


@pytest.mark.parametrize("kind", ["TypeScript SDK", "server-everything"])
def test_a_restart_noticed_by_the_stream_is_reported_without_a_call(kind: str) -> None:
    async def story(server: connection.Server) -> None:
        await harness.call(server, "echo", {})
        restarted.forget()
        deadline = time.monotonic() + 30
        while server.status().state == "open":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        assert "no longer knows the session" in server.status().error
        answer = await harness.call(server, "echo", {})
        assert [block["text"] for block in answer["content"]] == ["echoed", results.NEW_SESSION]
        assert (server.status().state, server.status().error) == ("open", "")
        assert len((await harness.call(server, "echo", {}))["content"]) == 1

    with session_server.running(session_server.REFUSALS[kind]) as restarted:
        run_connected(restarted.url, story)
