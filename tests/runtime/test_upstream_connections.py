"""Tests that calls of an upstream server's tools are admitted like all others, and reach the server or say why not."""

from __future__ import annotations

import asyncio
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import InterfaceError

from tests.plugins.upstream import listing, scripting
from tests.runtime import connected
from tests.runtime.connected import heard as heard
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.control.servers import plugin_overview
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import calls as gate
from toolbelt.core import catalog, connections, errors, tool_versions
from toolbelt.plugins import registry
from toolbelt.plugins.upstream import backoff, connection, importing
from toolbelt.runtime import calls, plugins, upstream_calls, upstream_listing, upstream_status
from toolbelt.store import snapshots
from toolbelt.web.plugins import listing as plugins_view_model

# What a connection tells unasked is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)


def test_an_answer_is_what_a_plugins_would_be(script: scripting.Script) -> None:
    connected.ready(script, "echo", "structure", "picture")

    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert connected.content("files__structure") == {"n": 1}
    assert connected.content("files__picture")["content"][1]["mimeType"] == "image/png"
    assert script.starts == 1


def test_a_tool_of_another_name_is_asked_for_by_its_servers_own(script: scripting.Script) -> None:
    script.lists(listing.tool("say it/again"))
    connected.ready(script, "say_it_again")

    assert connected.content("files__say_it_again", {"a": 1}) == {"result": '{"a": 1}'}


def test_what_the_tool_says_of_its_failure_reaches_the_model(script: scripting.Script) -> None:
    connected.ready(script, "fail", "refuse")

    assert connected.refusal("files__fail") == ("tool-failed", "There is no such file.")
    assert connected.refusal("files__refuse") == ("tool-failed", "I do not like this.")


def test_a_secret_that_a_server_says_back_is_withheld(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_HEADER", "Bearer sesame-7000")
    # What a progress message of the scripted server says.
    monkeypatch.setenv("MCP_STEP", "step 2")
    connected.ready(script, "echo", "environment", "progress", env={"A": "${MCP_HEADER}", "B": "${MCP_STEP}"})

    assert "sesame" not in str(connected.content("files__environment", {"names": ["A"]}))
    assert connected.content("files__echo", {"a": ["sesame-7000"]}) == {"result": '{"a": ["[withheld]"]}'}
    messages: list[str | None] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    calls.run("ada", "files__progress", {}, progress=heard)
    assert messages == ["step 1", "[withheld]"]


def test_a_server_that_hangs_is_given_its_own_time(script: scripting.Script) -> None:
    connected.ready(script, "hang", timeout=1)

    assert connected.refusal("files__hang") == ("timed-out", "files__hang did not answer within 1 s.")


def test_a_call_has_no_more_time_than_any(script: scripting.Script, settings: Any) -> None:
    connected.ready(script, "hang", "echo")
    connected.content("files__echo")
    settings.TOOLBELT_CALL_SECONDS = 0.2

    assert connected.refusal("files__hang") == ("timed-out", "files__hang did not answer within 0.2 s.")


def test_a_server_that_tells_of_its_progress_has_its_time_again(script: scripting.Script) -> None:
    connected.ready(script, "work", timeout=2)

    assert connected.content("files__work", {"seconds": 4}) == {"result": "worked"}


def test_progress_makes_no_call_longer_than_any_may_be(script: scripting.Script, settings: Any) -> None:
    connected.ready(script, "work", timeout=2)
    settings.TOOLBELT_CALL_SECONDS = 3

    assert connected.refusal("files__work", {"seconds": 8}) == (
        "timed-out",
        "files__work did not answer within 3 s.",
    )


def test_a_server_that_dies_in_mid_call_is_there_for_the_next(script: scripting.Script) -> None:
    connected.ready(script, "die", "echo")

    assert connected.refusal("files__die")[0] == "tool-unavailable"
    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert script.starts == 2


def test_an_answer_that_is_too_large_is_refused(script: scripting.Script, settings: Any) -> None:
    connected.ready(script, "echo")
    settings.TOOLBELT_CALL_RESULT_BYTES = 1_000

    assert connected.refusal("files__echo", {"a": "x" * 2_000})[0] == "tool-failed"


def test_a_tool_that_was_switched_off_a_moment_ago_is_refused(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")

    entries.change(connected.OPERATOR, "plugin", "files", {"active": False})

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    assert script.starts == 1


def test_a_tool_that_changed_behind_our_back_is_not_called(
    script: scripting.Script, heard: Callable[[], None]
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    script.lists(listing.tool("echo", "Says it again, and sends it away."))

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    heard()

    assert tool_versions.is_changed(snapshots.catalog().tools["files__echo"])
    (change,) = [one for one in configured.review("files").changes if one.kind == "changed"]
    assert change.differences[0].old == "Says it again."


def test_a_change_that_a_server_tells_of_is_held(script: scripting.Script, heard: Callable[[], None]) -> None:
    connected.ready(script, "announce", "echo")
    connected.content("files__echo")
    script.lists(listing.tool("announce", "Does announce."), listing.tool("echo", "Says it again!"))

    connected.content("files__announce")
    heard()

    assert connected.refusal("files__echo")[0] == "tool-unavailable"


def test_a_server_that_is_reached_otherwise_is_reached_so_from_then_on(
    script: scripting.Script, tmp_path: Path
) -> None:
    connected.ready(script, "environment")
    names = {"names": ["LEVEL"]}
    assert connected.content("files__environment", names) == {"result": '{"LEVEL": null}'}

    configured.reconnect(connected.OPERATOR.actor, "files", {**script.connection, "env": {"LEVEL": "high"}})

    assert connected.content("files__environment", names) == {"result": '{"LEVEL": "high"}'}


def test_one_slow_server_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    slow, quick = connected.two(tmp_path)
    slow.is_made("silent")
    connected.add("slow", {**slow.connection, "timeout": 2})
    connected.add("quick", quick.connection)
    came = []

    upstream_listing.refresh(["slow", "quick"], lambda name, answer: came.append((name, bool(answer.error))))

    assert came == [("quick", False), ("slow", True)]


def test_nobody_waits_where_nobody_may(tmp_path: Path) -> None:
    slow, _ = connected.two(tmp_path)
    connected.add("slow", {**slow.connection, "timeout": 20})
    done = threading.Event()

    upstream_listing.refresh_soon(["slow"], lambda name, answer: done.set())
    assert upstream_status.read("slow").is_being_asked
    assert done.wait(20)


def test_a_server_that_is_not_there_is_named_before_any_is_asked(script: scripting.Script) -> None:
    connected.add("files", script.connection)

    with pytest.raises(errors.NotFound, match="Did you mean files"):
        connected.refresh("files", "fils")
    assert script.starts == 0


def test_the_status_says_what_is_known_without_asking(script: scripting.Script) -> None:
    connected.add("files", script.connection)
    assert upstream_status.read("files").state == "idle"

    connected.refresh("files")
    now = upstream_status.read("files")
    assert (now.state, now.server, now.tools, now.error) == ("open", "scripted 1", len(scripting.ODD) + 1, "")
    assert now.answered is not None

    plugins.stop()
    assert upstream_status.read("files").state == "idle"
    assert upstream_status.read("files").server == "scripted 1"


def test_a_call_that_cannot_reach_a_server_is_told_to_operators_until_one_does(
    script: scripting.Script, heard: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    script.is_made("broken")

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    heard()

    call_command("mcp", "list")
    printed = capsys.readouterr().out
    assert "not responding" in printed
    assert "files did not respond to a call; the next call tries again: " in printed
    assert "cannot find my database" in printed
    (page,) = plugin_overview.load_all()
    assert plugins_view_model.state(page).word == "Not responding"
    # The tools are there for the call that tries again.
    script.is_made("broken", so=False)
    refused_until(lambda: calls.run("ada", "files__echo", {}))
    heard()
    call_command("mcp", "list")
    assert "not responding" not in capsys.readouterr().out


def test_a_refresh_by_another_process_ends_the_pause_of_this_one(
    script: scripting.Script, heard: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    # Each pause lasts longer than the test.
    monkeypatch.setattr(backoff, "random", types.SimpleNamespace(uniform=lambda low, high: 1_000.0))
    script.is_made("broken")
    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    heard()
    script.is_made("broken", so=False)
    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    assert upstream_status.read("files").state == "waiting"

    configured.record(connected.OPERATOR.actor, "files", asked_elsewhere(script))

    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}


def asked_elsewhere(script: scripting.Script) -> importing.Answer:
    """Return what the server lists on a connection of its own, as another process has."""
    reached = connections.of(script.connection)
    assert reached is not None

    async def asked(server: connection.Server) -> importing.Answer:
        try:
            return await server.ask()
        finally:
            await server.close()

    return asyncio.run(asked(connection.Server(reached, environ={})))


def refused_until(call: Callable[[], calls.Answer]) -> None:
    """Call until it goes through: the pause after a failure has to pass."""
    end = time.monotonic() + 30
    while not isinstance(call(), calls.Result):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_arguments_that_are_required_with_a_default_are_filled_in_for_the_server_and_the_record(
    script: scripting.Script, settings: Any
) -> None:
    settings.TOOLBELT_RECORD_ARGUMENTS = True
    # As Playwright's server lists its screenshot.
    kind = {"type": "string", "enum": ["png", "jpeg"], "default": "png"}
    shot = listing.tool("shot", "Takes one.", {"type": kind})
    shot["inputSchema"]["required"] = ["type"]
    script.lists(shot)
    connected.ready(script, "shot")

    assert connected.content("files__shot") == {"result": '{"type": "png"}'}
    assert connected.content("files__shot", {"type": "jpeg"}) == {"result": '{"type": "jpeg"}'}
    assert connected.refusal("files__shot", {"type": "gif"})[0] == "invalid-arguments"
    assert calls.admit("ada", "files__shot", {}) == gate.Admission(tool="files__shot")
    records = models.CallRecord.objects.order_by("id").values_list("arguments", flat=True)
    assert list(records)[:2] == [{"type": "png"}, {"type": "jpeg"}]


def test_the_time_that_it_takes_to_find_out_who_shares_a_connection_is_part_of_the_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [300.0]

    class Slow:
        has_session = True

        def __init__(self, reached: Any, **given: Any) -> None:
            """Stand where a connection does: to connect takes all the time there is, and a call never ends."""

        async def tools(self) -> upstream_listing.Answer:
            seconds[0] = 0.0
            return upstream_listing.Answer()

        async def call(self, *given: Any, **more: Any) -> Any:
            await asyncio.Event().wait()

        async def close(self) -> None:
            """Have nothing to close."""

    monkeypatch.setattr(connection, "Server", Slow)
    connected.add("files", {"url": "https://files.example/mcp"})
    plugin = snapshots.catalog().plugins["files"]
    tool = catalog.Tool(key="files__read", plugin="files")

    async def story() -> None:
        async with asyncio.timeout(10):
            with pytest.raises(registry.TimedOutError):
                await upstream_calls.call(plugin, tool, {}, left=lambda: seconds[0])

    asyncio.run(story())


def test_a_call_made_again_whose_answers_cannot_be_judged_has_not_run(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    client: Any = types.SimpleNamespace(resumed={"requestState": "x"})

    def may_call() -> None:
        raise InterfaceError("the connection is closed")

    answer = async_to_sync(calls.arun)("ada", "files__echo", {}, may_call=may_call, client=client)

    assert answer == calls.unchecked()
    assert script.calls == 0
