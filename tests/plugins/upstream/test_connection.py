"""Does a connection last as long as it can, and is nobody kept waiting by one that does not?"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import listing, scripting
from toolbelt.core import connections
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import (
    backoff,
    connection,
    importing,
    live_connection,
    opening,
    requests,
    transports,
)
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow

T = TypeVar("T")
NEVER = 30


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


class Using:
    """A connection to a scripted server for the length of a test, and what it told unasked."""

    def __init__(self, script: scripting.Script, **given: Any) -> None:
        reached = connections.of(script.connection)
        assert reached is not None
        limits = given.pop("limits", bounds.Limits(first_pause=60.0))
        environ, sleep = given.pop("environ", {}), given.pop("sleep", asyncio.sleep)
        self.told: asyncio.Queue[importing.Answer] = asyncio.Queue()
        self.server = connection.Server(
            dataclasses.replace(reached, **given),
            environ=environ,
            told=self.told.put_nowait,
            bounds=limits,
            sleep=sleep,
        )

    def run(self, story: Callable[[connection.Server], Awaitable[T]]) -> T:
        async def whole() -> T:
            try:
                async with asyncio.timeout(NEVER):
                    return await story(self.server)
            finally:
                await self.server.close()

        return asyncio.run(whole())


def text(result: Any) -> str:
    return str(result["content"][0]["text"])


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


def test_all_pages_of_a_list_are_read(script: scripting.Script) -> None:
    script.lists(*(listing.tool(f"t{n}") for n in range(2_000)))

    answer = Using(script).run(lambda server: server.tools())

    assert len(answer.tools) == 2_000
    assert answer.is_complete


@pytest.mark.parametrize("limits", [{"tools": 1_500}, {"pages": 1}, {"bytes": 5_000}])
def test_a_list_without_an_end_is_cut_and_that_is_said(
    script: scripting.Script, limits: dict[str, int]
) -> None:
    script.lists(*(listing.tool(f"t{n}") for n in range(2_000)))

    answer = Using(script, limits=bounds.Limits(**limits)).run(lambda server: server.tools())

    assert 0 < len(answer.tools) < 2_000
    assert not answer.is_complete
    assert "lists more than can be taken" in str(answer.problems[0])


def test_a_tool_that_is_not_as_mcp_has_it_does_not_cost_the_others(script: scripting.Script) -> None:
    odd: list[Any] = [
        {"name": "bare"},
        listing.tool("hinted", annotations={"readOnlyHint": "perhaps"}),
        {"description": 3},
        "stray",
    ]
    script.lists(*(listing.tool(f"t{n}") for n in range(1_100)), *odd)

    async def story(server: connection.Server) -> importing.Answer:
        assert text(await server.call("echo", {"n": 1})) == '{"n": 1}'
        return await server.tools()

    answer = Using(script).run(story)
    made, problems = importing.definitions(answer.tools, "ns", "the server 'x'")

    assert answer.is_complete
    assert [str(problem) for problem in answer.problems] == [
        "tools: The server lists 1 entry that is no tool at all, and it was left out."
    ]
    assert len(made) == 1_101
    assert [str(problem) for problem in problems] == [
        "tools.bare: It has no inputSchema. The server 'x' goes without it.",
        "tools[1102]: It has no name. The server 'x' goes without it.",
    ]


@pytest.mark.parametrize("listed", [{"t": 1}, "none", None])
def test_an_answer_that_is_no_list_fails_the_server_in_plain_words(
    script: scripting.Script, listed: Any
) -> None:
    script.answers(listed)

    with pytest.raises(live_connection.UnreachableError, match="answered what is no list of tools"):
        Using(script).run(lambda server: server.tools())


def test_a_server_that_dies_in_mid_call_answers_at_once_and_is_there_for_the_next(
    script: scripting.Script,
) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match="It wrote last: killed by a test"):
            await server.call("die", {})
        assert text(await server.call("echo", {"n": 1})) == '{"n": 1}'

    Using(script).run(story)

    assert script.starts == 2


@pytest.mark.parametrize(
    ("tool", "said"),
    [("flood", "more than 1000000 bytes without ending the line"), ("chatter", "no messages of MCP")],
)
def test_a_server_that_writes_what_nobody_can_read_is_given_up_and_is_there_for_the_next(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch, tool: str, said: str
) -> None:
    monkeypatch.setattr(transports, "MAX_BYTES", 1_000_000)

    async def story(server: connection.Server) -> None:
        with pytest.raises(live_connection.UnreachableError, match=said):
            await server.call(tool, {})
        assert text(await server.call("echo", {"n": 1})) == '{"n": 1}'

    Using(script).run(story)

    assert script.starts == 2


def test_who_waits_while_it_dies_is_told_too(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> list[object]:
        calls = server.call("hang", {}), server.call("die", {})
        ended: list[object] = await asyncio.gather(*calls, return_exceptions=True)
        return ended

    for ended in Using(script).run(story):
        assert isinstance(ended, live_connection.UnreachableError)


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


def test_a_call_that_takes_too_long_is_taken_back(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        await server.tools()
        with pytest.raises(TimeoutError):
            await server.call("hang", {})
        await server.call("echo", {})

    Using(script, timeout=1).run(story)

    assert script.starts == 1
    assert script.has_heard_of_a_cancellation()


def test_a_server_that_answers_nobody_any_more_is_started_anew(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        with pytest.raises(TimeoutError):
            await server.call("hang", {})
        await server.call("echo", {})

    Using(script, timeout=1, limits=bounds.Limits(late=1)).run(story)

    assert script.starts == 2


def test_whoever_gives_up_takes_their_own_request_back_and_no_others(script: scripting.Script) -> None:
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


def test_whoever_gives_up_while_it_starts_does_not_stop_it_for_others(script: scripting.Script) -> None:
    async def story(server: connection.Server) -> None:
        impatient = asyncio.ensure_future(server.call("echo", {}))
        patient = asyncio.ensure_future(server.call("echo", {}))
        await asyncio.sleep(0)
        impatient.cancel()
        assert text(await patient) == "{}"

    Using(script).run(story)

    assert script.starts == 1


def test_what_a_server_refuses_is_told_in_its_words(script: scripting.Script) -> None:
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


def test_a_server_that_says_that_its_tools_changed_is_asked_again(script: scripting.Script) -> None:
    using = Using(script)

    async def story(server: connection.Server) -> tuple[int, int]:
        await server.call("echo", {})
        script.lists(listing.tool("announce"), listing.tool("echo"))
        await server.call("announce", {})
        first, second = await using.told.get(), await using.told.get()
        return len(first.tools), len(second.tools)

    assert using.run(story) == (1 + len(scripting.ODD), 2)


def test_a_server_that_never_stops_telling_is_listed_ever_more_seldom(script: scripting.Script) -> None:
    pauses: list[float] = []

    async def passed(pause: float) -> None:
        pauses.append(round(pause, -1))

    limits = bounds.Limits(relist_pause=10.0, longest_relist_pause=60.0)
    using = Using(script, limits=limits, sleep=passed)

    async def story(server: connection.Server) -> None:
        await server.tools()
        await using.told.get()
        for _ in range(6):
            await server.call("announce", {})
            await using.told.get()

    using.run(story)

    assert pauses == [10, 20, 40, 60, 60]


def test_what_an_operator_asks_for_is_not_told_again(script: scripting.Script) -> None:
    using = Using(script)

    using.run(lambda server: server.ask())

    assert using.told.empty()


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


def test_without_the_client_it_is_said_how_to_get_it(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)

    assert Using(script).run(lambda server: server.ask()).error == opening.INSTALL


def test_a_connection_that_is_closed_while_it_is_made_leaves_the_server_to_others(
    script: scripting.Script,
) -> None:
    script.delay(20)
    reached = connections.of(script.connection)
    assert reached is not None
    away = backoff.Backoff(bounds.Limits(first_pause=60.0))
    server = connection.Server(reached, environ={}, away=away)

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


def test_whoever_waits_for_a_connection_that_is_closed_before_it_begins_is_told(
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


def test_a_server_that_tells_of_many_updates_is_heard_once_a_pause(script: scripting.Script) -> None:
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
        # The server may not know yet that somebody wants to hear.
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
