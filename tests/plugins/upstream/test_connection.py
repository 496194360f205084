"""Tests of a connection to a server: when it opens, how long it lasts, and how it ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.plugins.upstream import listing, scripting
from tests.plugins.upstream.harness import ConnectionHarness, call, text
from toolbelt.core import connections
from toolbelt.plugins.upstream import (
    backoff,
    bodies,
    connection,
    live_connection,
    opening,
)
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def test_a_server_is_started_once_by_the_first_call(script: scripting.Script) -> None:
    harness = ConnectionHarness(script)
    assert harness.server.status().state == "idle"

    async def story(server: connection.Server) -> None:
        await asyncio.gather(*(call(server, "echo", {"n": n}) for n in range(5)))
        status = server.status()
        assert (status.state, status.server, status.protocol) == ("open", "scripted 1", "2025-11-25")

    harness.run(story)

    assert script.starts == 1
    assert harness.server.status().state == "closed"


@pytest.mark.parametrize(
    ("tool", "message"),
    [("flood", "more than 1000000 bytes without ending the line"), ("chatter", "not MCP messages")],
)
def test_a_server_that_writes_unreadable_lines_is_restarted_for_the_next_call(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch, tool: str, message: str
) -> None:
    monkeypatch.setattr(bodies, "MAX_BYTES", 1_000_000)

    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match=message):
            await call(server, tool, {})
        assert text(await call(server, "echo", {"n": 1})) == '{"n": 1}'

    ConnectionHarness(script).run(story)

    assert script.starts == 2


def test_a_server_that_cannot_start_is_reported_and_not_retried_during_a_pause(
    script: scripting.Script,
) -> None:
    script.is_made("broken")

    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match="cannot find my database"):
            await server.tools()
        assert server.status().state == "waiting"
        with pytest.raises(live_connection.UnreachableError, match=r"The next attempt is in \d+ s"):
            await call(server, "echo", {})
        # Once more without the probe, which may have ended it.
        assert script.starts == 2

        script.is_made("broken", so=False)
        assert (await server.ask()).error == ""
        assert text(await call(server, "echo", {})) == "{}"

    ConnectionHarness(script).run(story)


def test_the_pause_grows_with_each_failure(script: scripting.Script) -> None:
    script.is_made("broken")

    async def story(server: connection.Server) -> list[float]:
        pauses = []
        for _ in range(3):
            await server.ask()
            pauses.append(server.status().pause)
        return pauses

    first, second, third = ConnectionHarness(script, limits=bounds.Limits(first_pause=10.0)).run(story)

    assert 4 < first <= 10 < second * 1.2
    assert second < 20 < third * 1.2
    assert third <= 40


def test_a_missing_program_is_reported_by_name(script: scripting.Script) -> None:
    harness = ConnectionHarness(script, command="no-such-program", args=())

    answer = harness.run(lambda server: server.ask())

    assert answer.error.startswith("The program 'no-such-program' was not found")


def test_a_program_that_is_no_server_is_reported_with_its_exit_code_and_its_output(
    script: scripting.Script,
) -> None:
    harness = ConnectionHarness(script, command=sys.executable, args=("-c", "print('hello')"))

    answer = harness.run(lambda server: server.ask())

    assert answer.error == (
        "The program ended (exit code 0) before it answered. Check that the command starts an MCP server."
        " It wrote last: hello"
    )


def test_a_silent_server_times_out(script: scripting.Script) -> None:
    script.is_made("silent")

    answer = ConnectionHarness(script, timeout=1).run(lambda server: server.ask())

    assert answer.error == "The server did not answer within 1 s."


def test_a_caller_cancelled_during_startup_does_not_affect_other_callers(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        impatient = asyncio.ensure_future(call(server, "echo", {}))
        patient = asyncio.ensure_future(call(server, "echo", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        assert text(await patient) == "{}"

    ConnectionHarness(script).run(story)

    assert script.starts == 1


def test_an_announced_change_lists_the_server_again(script: scripting.Script) -> None:
    harness = ConnectionHarness(script)

    async def story(server: connection.Server) -> tuple[int, int]:
        await call(server, "echo", {})
        script.lists(listing.tool("announce"), listing.tool("echo"))
        await call(server, "announce", {})
        first, second = await harness.lists.get(), await harness.lists.get()
        return len(first.tools), len(second.tools)

    assert harness.run(story) == (1 + len(scripting.ODD), 2)


def test_repeated_announcements_list_a_server_less_and_less_often(
    script: scripting.Script,
) -> None:
    pauses: list[float] = []

    async def record_pause(pause: float) -> None:
        pauses.append(round(pause, -1))

    limits = bounds.Limits(relist_pause=10.0, longest_relist_pause=60.0)
    harness = ConnectionHarness(script, limits=limits, sleep=record_pause)

    async def story(server: connection.Server) -> None:
        await server.tools()
        await harness.lists.get()
        for _ in range(6):
            await call(server, "announce", {})
            await harness.lists.get()

    harness.run(story)

    assert pauses == [10, 20, 40, 60, 60]


def test_a_list_requested_by_an_operator_is_not_reported_as_a_change(script: scripting.Script) -> None:
    harness = ConnectionHarness(script)

    harness.run(lambda server: server.ask())

    assert harness.lists.empty()


def test_a_process_gets_only_its_configured_environment_with_variables_filled_in(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "the installation's own")
    harness = ConnectionHarness(script, env={"LEVEL": "${LEVEL}-1"}, environ={"LEVEL": "debug"})

    result = harness.run(lambda server: call(server, "environment", {"names": ["LEVEL", "SECRET_KEY"]}))

    assert text(result) == '{"LEVEL": "debug-1", "SECRET_KEY": null}'


def test_a_missing_variable_is_reported_by_name(script: scripting.Script) -> None:
    harness = ConnectionHarness(script, env={"TOKEN": "${FILES_TOKEN}"})

    answer = harness.run(lambda server: server.ask())

    assert answer.error == ("The variable 'FILES_TOKEN' is not set. Set it in the environment of the server.")
    assert script.starts == 0


def test_a_missing_client_package_error_explains_how_to_install_it(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)

    assert ConnectionHarness(script).run(lambda server: server.ask()).error == opening.INSTALL


def test_closing_during_connecting_does_not_delay_other_connections(
    script: scripting.Script,
) -> None:
    script.delay(20)
    settings = connections.of(script.connection)
    assert settings is not None
    backoff_ = backoff.Backoff(bounds.Limits(first_pause=60.0))
    server = connection.Server(settings, environ={}, pause=backoff_)

    async def story() -> None:
        request = asyncio.ensure_future(server.tools())
        # Let the connection attempt start; it takes a while.
        for _ in range(10):
            await asyncio.sleep(0)
        assert server.status().state == "connecting"
        await server.close()
        with pytest.raises(live_connection.UnreachableError):
            await request

    asyncio.run(story())

    assert backoff_.left() == 0


def test_closing_before_connecting_raises_an_error_for_waiting_callers(
    script: scripting.Script,
) -> None:
    async def story(server: connection.Server) -> None:
        request = asyncio.create_task(server.tools())
        await asyncio.sleep(0)
        await server.close()
        with pytest.raises(live_connection.ClosedError):
            await request

    ConnectionHarness(script).run(story)

    assert script.starts == 0
