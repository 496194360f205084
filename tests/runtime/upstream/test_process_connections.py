"""Tests that calls of an upstream server's tools are checked like all others, and reach the server or fail clearly."""

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
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from tests.runtime.connected import wait_for_news as wait_for_news
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.control.servers import plugin_overview
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import admitting as gate
from toolbelt.core import catalog, connections, errors, tool_versions
from toolbelt.core.imported import importing
from toolbelt.core.request_key import RequestKey
from toolbelt.plugins import registry
from toolbelt.plugins.upstream import backoff, connection
from toolbelt.runtime import calls, plugins
from toolbelt.runtime.calls import gates, on_servers
from toolbelt.runtime.upstream import pool, server_lists, status
from toolbelt.store import snapshots
from toolbelt.web.plugins import listing as plugins_view_model

# Another thread writes the unsolicited answers of a connection.
pytestmark = pytest.mark.django_db(transaction=True)


def test_an_upstream_result_has_the_form_of_a_plugin_s_result(script: scripting.Script) -> None:
    connected.ready(script, "echo", "structure", "picture")

    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert connected.content("files__structure") == {"n": 1}
    assert connected.content("files__picture")["content"][1]["mimeType"] == "image/png"
    assert script.starts == 1


def test_a_renamed_tool_is_called_by_its_server_s_own_name(script: scripting.Script) -> None:
    script.lists(listing.tool("say it/again"))
    connected.ready(script, "say_it_again")

    assert connected.content("files__say_it_again", {"a": 1}) == {"result": '{"a": 1}'}


def test_a_tool_s_error_message_reaches_the_model(script: scripting.Script) -> None:
    connected.ready(script, "fail", "refuse")

    assert connected.refusal("files__fail") == ("tool-failed", "There is no such file.")
    assert connected.refusal("files__refuse") == ("tool-failed", "I do not like this.")


def test_a_secret_in_a_server_s_answer_or_progress_is_withheld(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_HEADER", "Bearer sesame-7000")
    # The text of a progress message of the scripted server.
    monkeypatch.setenv("MCP_STEP", "step 2")
    connected.ready(script, "echo", "environment", "progress", env={"A": "${MCP_HEADER}", "B": "${MCP_STEP}"})

    assert "sesame" not in str(connected.content("files__environment", {"names": ["A"]}))
    assert connected.content("files__echo", {"a": ["sesame-7000"]}) == {"result": '{"a": ["[withheld]"]}'}
    messages: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    calls.answer_blocking(
        calls.Call(key=RequestKey("ada"), tool="files__progress", arguments={}, progress=on_progress)
    )
    assert messages == ["step 1", "[withheld]"]


def test_variables_are_replaced_in_the_whole_command_line(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *rest = script.connection["args"]
    monkeypatch.setenv("MCP_PYTHON", script.connection["command"])
    args = ["${MCP_PROGRAM:-" + program + "}", *rest]

    connected.ready(script, "echo", command="${MCP_PYTHON}", args=args, cwd="${env:HOME}")

    assert connected.content("files__echo", {"a": ["${HOME}"]}) == {"result": '{"a": ["${HOME}"]}'}


def test_a_hanging_server_times_out_after_its_own_timeout(script: scripting.Script) -> None:
    connected.ready(script, "hang", timeout=1)

    assert connected.refusal("files__hang") == ("timed-out", "files__hang did not answer within 1 s.")


def test_what_a_server_writes_instead_of_an_answer_reaches_the_operator_only(
    script: scripting.Script,
) -> None:
    connected.ready(script, "hang", timeout=3)

    refused = connected.refusal("files__hang", {"write": "Traceback (most recent call last):\nKeyError: 1\n"})
    assert refused == ("timed-out", "files__hang did not answer within 3 s.")
    record = models.CallRecord.objects.get()
    assert record.error == f"{refused[1]} The server wrote last: KeyError: 1"


def test_a_call_never_exceeds_the_general_time_limit(script: scripting.Script, settings: Any) -> None:
    connected.ready(script, "hang", "echo")
    connected.content("files__echo")
    settings.TOOLBELT_CALL_SECONDS = 0.2

    assert connected.refusal("files__hang") == ("timed-out", "files__hang did not answer within 0.2 s.")


def test_progress_restarts_the_server_s_timeout(script: scripting.Script) -> None:
    connected.ready(script, "work", timeout=2)

    assert connected.content("files__work", {"seconds": 4}) == {"result": "worked"}


def test_progress_does_not_extend_a_call_beyond_the_general_limit(
    script: scripting.Script, settings: Any
) -> None:
    connected.ready(script, "work", timeout=2)
    settings.TOOLBELT_CALL_SECONDS = 3

    assert connected.refusal("files__work", {"seconds": 8}) == (
        "timed-out",
        "files__work did not answer within 3 s.",
    )


def test_a_server_that_dies_during_a_call_is_restarted_for_the_next(script: scripting.Script) -> None:
    connected.ready(script, "die", "echo")

    assert connected.refusal("files__die")[0] == "tool-unavailable"
    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert script.starts == 2


def test_an_answer_over_the_size_limit_is_refused(script: scripting.Script, settings: Any) -> None:
    connected.ready(script, "echo")
    settings.TOOLBELT_CALL_RESULT_BYTES = 1_000

    assert connected.refusal("files__echo", {"a": "x" * 2_000})[0] == "tool-failed"


def test_a_tool_is_refused_immediately_after_its_server_is_disabled(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")

    entries.change(connected.OPERATOR, "plugin", "files", {"active": False})

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    assert script.starts == 1


def test_a_tool_changed_while_disconnected_is_not_called_until_reviewed(
    script: scripting.Script, wait_for_news: Callable[[], None]
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    script.lists(listing.tool("echo", "Says it again, and sends it away."))

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    wait_for_news()

    assert tool_versions.is_changed(snapshots.catalog().tools["files__echo"])
    (change,) = [change for change in configured.review("files").changes if change.kind == "changed"]
    assert change.differences[0].old == "Says it again."


def test_a_change_announced_by_a_server_waits_for_review(
    script: scripting.Script, wait_for_news: Callable[[], None]
) -> None:
    connected.ready(script, "announce", "echo")
    connected.content("files__echo")
    script.lists(listing.tool("announce", "Does announce."), listing.tool("echo", "Says it again!"))

    connected.content("files__announce")
    wait_for_news()

    assert connected.refusal("files__echo")[0] == "tool-unavailable"


def test_new_connection_settings_apply_to_the_next_call(script: scripting.Script, tmp_path: Path) -> None:
    connected.ready(script, "environment")
    names = {"names": ["LEVEL"]}
    assert connected.content("files__environment", names) == {"result": '{"LEVEL": null}'}

    entries.change(
        connected.OPERATOR, "plugin", "files", {"upstream": {**script.connection, "env": {"LEVEL": "high"}}}
    )

    assert connected.content("files__environment", names) == {"result": '{"LEVEL": "high"}'}


def test_a_slow_server_does_not_delay_the_refresh_of_others(tmp_path: Path) -> None:
    slow, quick = connected.two(tmp_path)
    slow.is_made("silent")
    connected.add("slow", slow.connection)
    connected.add("quick", quick.connection)
    answered = []

    def record(name: str, answer: importing.ServerListing) -> None:
        answered.append(name)
        if name == "quick":
            slow.is_made("silent", so=False)
            slow.is_killed()

    server_lists.refresh(["slow", "quick"], record)

    assert answered == ["quick", "slow"]


def test_a_server_at_its_maximum_of_connections_does_not_abort_the_refresh_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, quick = connected.two(tmp_path)
    connected.add("busy", busy.connection)
    connected.add("quick", quick.connection)
    take = server_lists.take

    def take_or_refuse(plugin: catalog.Plugin, *given: Any, **options: Any) -> pool.Pooled:
        if plugin.name == "busy":
            raise pool.TooManyError("All 4 connections are in use.")
        return take(plugin, *given, **options)

    monkeypatch.setattr(server_lists, "take", take_or_refuse)

    answers = server_lists.refresh(["busy", "quick"], lambda name, answer: answer.error)

    assert answers == {"busy": "All 4 connections are in use.", "quick": ""}


def test_an_answer_that_cannot_be_recorded_is_reported_after_the_others_are_recorded(tmp_path: Path) -> None:
    changed, quick = connected.two(tmp_path)
    connected.add("changed", changed.connection)
    connected.add("quick", quick.connection)
    # So that its answer is the first.
    quick.delay(0.5)
    recorded = []

    def record(name: str, answer: importing.ServerListing) -> None:
        if name == "changed":
            raise errors.Refused("changed changed while its tools were listed: try again.")
        recorded.append(name)

    with pytest.raises(errors.Refused, match="try again"):
        server_lists.refresh(["changed", "quick"], record)

    assert recorded == ["quick"]


def test_all_answers_that_cannot_be_recorded_are_reported(tmp_path: Path) -> None:
    one, two = connected.two(tmp_path)
    connected.add("one", one.connection)
    connected.add("two", two.connection)

    def record(name: str, answer: importing.ServerListing) -> None:
        raise errors.Refused("Try again.")

    with pytest.raises(errors.Invalid) as refused:
        server_lists.refresh(["one", "two"], record)

    assert sorted(map(str, refused.value.problems)) == ["one: Try again.", "two: Try again."]


def test_a_background_refresh_returns_before_the_server_answers(tmp_path: Path) -> None:
    slow, _ = connected.two(tmp_path)
    connected.add("slow", {**slow.connection, "timeout": 20})
    done = threading.Event()

    server_lists.refresh_soon(["slow"], lambda name, answer: done.set())
    assert status.read("slow").is_being_asked
    assert done.wait(20)


def test_an_unknown_server_is_reported_before_any_server_is_contacted(script: scripting.Script) -> None:
    connected.add("files", script.connection)

    with pytest.raises(errors.NotFound, match="Did you mean files"):
        connected.refresh("files", "fils")
    assert script.starts == 0


def test_the_status_is_known_without_contacting_the_server(script: scripting.Script) -> None:
    connected.add("files", script.connection)
    assert status.read("files").state == "idle"

    connected.refresh("files")
    now = status.read("files")
    assert (now.state, now.server, now.tools, now.error) == ("open", "scripted 1", len(scripting.ODD) + 1, "")
    assert now.answered is not None

    plugins.stop()
    assert status.read("files").state == "idle"
    assert status.read("files").server == "scripted 1"


def test_operators_see_an_unreachable_server_until_a_call_reaches_it(
    script: scripting.Script, wait_for_news: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    script.is_made("broken")

    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    wait_for_news()

    call_command("mcp", "list")
    printed = capsys.readouterr().out
    assert "not responding" in printed
    assert "files did not respond to a call; the next call tries again: " in printed
    assert "cannot find my database" in printed
    (page,) = plugin_overview.load_all()
    assert plugins_view_model.state(page).word == "Not responding"
    # The next call tries again and finds the tools.
    script.is_made("broken", so=False)
    wait_until_accepted(lambda: calls.run("ada", "files__echo", {}))
    wait_for_news()
    call_command("mcp", "list")
    assert "not responding" not in capsys.readouterr().out


def test_a_refresh_by_another_process_ends_the_retry_pause(
    script: scripting.Script, wait_for_news: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    plugins.stop()
    # Each pause lasts longer than the test.
    monkeypatch.setattr(backoff, "random", types.SimpleNamespace(uniform=lambda low, high: 1_000.0))
    script.is_made("broken")
    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    wait_for_news()
    script.is_made("broken", so=False)
    assert connected.refusal("files__echo")[0] == "tool-unavailable"
    assert status.read("files").state == "waiting"

    configured.record(connected.OPERATOR, "files", list_elsewhere(script))

    assert connected.content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}


def list_elsewhere(script: scripting.Script) -> importing.ServerListing:
    """Return the server's list over a separate connection, as another process would have."""
    reached = connections.of(script.connection)
    assert reached is not None

    async def list_and_close(server: connection.Server) -> importing.ServerListing:
        try:
            return await server.ask()
        finally:
            await server.close()

    return asyncio.run(list_and_close(connection.Server(reached, environ={})))


def wait_until_accepted(call: Callable[[], calls.Answer]) -> None:
    """Repeat the call until it succeeds, because the pause after a failure has to pass."""
    end = time.monotonic() + 30
    while not isinstance(call(), calls.Result):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_required_arguments_with_a_default_are_filled_in_and_recorded(
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
    assert calls.admit(RequestKey("ada"), "files__shot", {}) == gate.Admission(tool="files__shot")
    records = models.CallRecord.objects.order_by("id").values_list("arguments", flat=True)
    assert list(records)[:2] == [{"type": "png"}, {"type": "jpeg"}]


def test_connecting_counts_toward_the_time_limit_of_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = calls.Call(key=RequestKey("ada"), tool="files__read", arguments={}, seconds=300.0)

    class Slow:
        has_session = True

        def __init__(self, reached: Any, **given: Any) -> None:
            """Replace a connection: connecting takes all the time that is left, and a call never ends."""

        async def tools(self) -> server_lists.ServerListing:
            object.__setattr__(call, "seconds", 0.0)
            return server_lists.ServerListing()

        async def connected(self) -> Any:
            await asyncio.Event().wait()

        async def close(self) -> None:
            """Do nothing."""

    monkeypatch.setattr(connection, "Server", Slow)
    connected.add("files", {"url": "https://files.example/mcp"})
    admitted = gates.Admitted(
        gate=gates.CallGate(call),
        definition=catalog.Tool(key="files__read", plugin="files"),
        server=snapshots.catalog().plugins["files"],
        state=None,
    )

    async def scenario() -> None:
        async with asyncio.timeout(10):
            with pytest.raises(registry.TimedOutError):
                await on_servers.run(admitted)

    asyncio.run(scenario())


def test_a_resumed_call_does_not_run_if_the_database_fails(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    client: Any = types.SimpleNamespace(resumed={"requestState": "x"})

    def may_call() -> None:
        raise InterfaceError("the connection is closed")

    call = calls.Call(key=RequestKey("ada"), tool="files__echo", arguments={})
    answer = async_to_sync(calls.answer)(call, calls.Caller(may_call=may_call, client=client))

    assert answer == calls.unchecked()
    assert script.calls == 0
