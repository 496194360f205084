"""Tests of a connection to a server: when it begins, how long it lasts, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.plugins.upstream import listing, scripting
from tests.plugins.upstream.connecting import Using, text
from toolbelt.core import connections
from toolbelt.plugins.upstream import (
    backoff,
    connection,
    live_connection,
    opening,
    transports,
)
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def test_nothing_is_started_before_it_is_needed_and_then_once(script: scripting.Script) -> None:
    using = Using(script)
    assert using.server.status().state == "idle"

    async def story(server: connection.Server) -> None:
        await asyncio.gather(*(server.call("echo", {"n": n}) for n in range(5)))
        status = server.status()
        assert (status.state, status.server, status.protocol) == ("open", "scripted 1", "2025-11-25")

    using.run(story)

    assert script.starts == 1
    assert using.server.status().state == "closed"


@pytest.mark.parametrize(
    ("tool", "said"),
    [("flood", "more than 1000000 bytes without ending the line"), ("chatter", "no messages of MCP")],
)
def test_a_server_that_writes_unreadable_lines_is_given_up_and_answers_the_next(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch, tool: str, said: str
) -> None:
    monkeypatch.setattr(transports, "MAX_BYTES", 1_000_000)

    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match=said):
            await server.call(tool, {})
        assert text(await server.call("echo", {"n": 1})) == '{"n": 1}'

    Using(script).run(story)

    assert script.starts == 2


def test_a_server_that_cannot_start_says_why_and_is_left_alone_for_a_while(script: scripting.Script) -> None:
    script.is_made("broken")

    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match="cannot find my database"):
            await server.tools()
        assert server.status().state == "waiting"
        with pytest.raises(live_connection.UnreachableError, match=r"The next attempt is in \d+ s"):
            await server.call("echo", {})
        assert script.starts == 1

        script.is_made("broken", so=False)
        assert (await server.ask()).error == ""
        assert text(await server.call("echo", {})) == "{}"

    Using(script).run(story)


def test_a_pause_grows_with_each_failure(script: scripting.Script) -> None:
    script.is_made("broken")

    async def story(server: connection.Server) -> list[float]:
        pauses = []
        for _ in range(3):
            await server.ask()
            pauses.append(server.status().pause)
        return pauses

    first, second, third = Using(script, limits=bounds.Limits(first_pause=10.0)).run(story)

    assert 4 < first <= 10 < second * 1.2
    assert second < 20 < third * 1.2
    assert third <= 40


def test_a_program_that_is_not_there_is_named(script: scripting.Script) -> None:
    using = Using(script, command="no-such-program", args=())

    answer = using.run(lambda server: server.ask())

    assert answer.error.startswith("The program 'no-such-program' was not found")


def test_a_server_that_does_not_speak_is_given_up(script: scripting.Script) -> None:
    script.is_made("silent")

    answer = Using(script, timeout=1).run(lambda server: server.ask())

    assert answer.error == "The server did not answer within 1 s."


def test_a_caller_that_gives_up_while_it_starts_does_not_stop_it_for_others(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        impatient = asyncio.ensure_future(server.call("echo", {}))
        patient = asyncio.ensure_future(server.call("echo", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        assert text(await patient) == "{}"

    Using(script).run(story)

    assert script.starts == 1


def test_a_server_that_announces_a_change_is_listed_again(script: scripting.Script) -> None:
    using = Using(script)

    async def story(server: connection.Server) -> tuple[int, int]:
        await server.call("echo", {})
        script.lists(listing.tool("announce"), listing.tool("echo"))
        await server.call("announce", {})
        first, second = await using.lists.get(), await using.lists.get()
        return len(first.tools), len(second.tools)

    assert using.run(story) == (1 + len(scripting.ODD), 2)


def test_a_server_that_keeps_announcing_changes_is_listed_less_and_less_often(
    script: scripting.Script,
) -> None:
    pauses: list[float] = []

    async def passed(pause: float) -> None:
        pauses.append(round(pause, -1))

    limits = bounds.Limits(relist_pause=10.0, longest_relist_pause=60.0)
    using = Using(script, limits=limits, sleep=passed)

    async def story(server: connection.Server) -> None:
        await server.tools()
        await using.lists.get()
        for _ in range(6):
            await server.call("announce", {})
            await using.lists.get()

    using.run(story)

    assert pauses == [10, 20, 40, 60, 60]


def test_a_list_that_an_operator_requests_is_not_reported_again(script: scripting.Script) -> None:
    using = Using(script)

    using.run(lambda server: server.ask())

    assert using.lists.empty()


def test_variables_are_filled_in_when_it_starts_and_nothing_else_is_handed_down(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "the installation's own")
    using = Using(script, env={"LEVEL": "${LEVEL}-1"}, environ={"LEVEL": "debug"})

    result = using.run(lambda server: server.call("environment", {"names": ["LEVEL", "SECRET_KEY"]}))

    assert text(result) == '{"LEVEL": "debug-1", "SECRET_KEY": null}'


def test_a_variable_that_is_not_set_names_itself(script: scripting.Script) -> None:
    using = Using(script, env={"TOKEN": "${FILES_TOKEN}"})

    answer = using.run(lambda server: server.ask())

    assert answer.error == ("The variable 'FILES_TOKEN' is not set. Set it in the environment of the server.")
    assert script.starts == 0


def test_without_the_client_an_error_explains_how_to_install_it(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)

    assert Using(script).run(lambda server: server.ask()).error == opening.INSTALL


def test_a_connection_that_is_closed_while_it_is_made_leaves_the_server_to_others(
    script: scripting.Script,
) -> None:
    script.delay(20)
    settings = connections.of(script.connection)
    assert settings is not None
    away = backoff.Backoff(bounds.Limits(first_pause=60.0))
    server = connection.Server(settings, environ={}, away=away)

    async def story() -> None:
        asking = asyncio.ensure_future(server.tools())
        # It begins to connect, which takes a while.
        for _ in range(10):
            await asyncio.sleep(0)
        assert server.status().state == "connecting"
        await server.close()
        with pytest.raises(live_connection.UnreachableError):
            await asking

    asyncio.run(story())

    assert away.left() == 0


def test_a_caller_of_a_connection_that_is_closed_before_it_begins_gets_an_error(
    script: scripting.Script,
) -> None:
    async def story(server: connection.Server) -> None:
        waiting = asyncio.create_task(server.tools())
        await asyncio.sleep(0)
        await server.close()
        with pytest.raises(live_connection.ClosedError):
            await waiting

    Using(script).run(story)

    assert script.starts == 0
