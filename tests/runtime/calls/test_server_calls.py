"""Tests that an ASGI server runs its clients' calls on its own event loop, and checks them there if that is quick."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.plugins.upstream import listing, scripting
from tests.runtime import connected
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
from toolbelt.core import admitting as gate
from toolbelt.core import schema
from toolbelt.runtime import calls, surfaces, threads
from toolbelt.runtime.calls import incoming
from toolbelt.runtime.records import record_writer
from toolbelt.runtime.surfaces import request_contexts, snapshots
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import state_probe

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")


@pytest.fixture
def thread_functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the names of the functions that ran in threads, while records are written in the background."""
    thread_functions: list[str] = []
    run = threads.run

    async def noted(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        thread_functions.append(function.__name__)
        return await run(function, *arguments, **options)

    monkeypatch.setattr(threads, "run", noted)
    record_writer.start()
    yield thread_functions
    record_writer.stop()


async def serve(ask: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine on the event loop of a server, and stop its connections as the server does."""
    with process_connections.hosted():
        try:
            return await ask()
        finally:
            await concurrently.do(process_connections.stop)


def look() -> incoming.Probe:
    """Return a function that always returns ada's current request context."""
    snapshot, source = snapshots.take(calls.RequestKey("ada"))
    surfaces.get_or_build(snapshot, source.agent_stamp)
    cache_key = source.catalog.stamp, surfaces.cache_key(snapshot, source.agent_stamp)
    number, stamps = source.number, (source.agent_stamp, source.catalog_stamp)
    state = state_probe.ProbedState(source.agent_id, number, stamps[0], number, stamps[1], None, None)
    probed = state_probe.ProbeResult(None, state)  # type: ignore[arg-type]
    context = request_contexts.RequestContext(probed, None, snapshot, cache_key)  # type: ignore[arg-type]

    async def current() -> request_contexts.RequestContext:
        return context

    return current


def call(arguments: Any = None) -> Callable[[], Awaitable[calls.Answer]]:
    seen = look()
    made = calls.Call(key=calls.RequestKey("ada"), tool="files__echo", arguments=arguments or {})
    return lambda: calls.answer(made, calls.Caller(probe=seen))


def outcomes() -> list[str]:
    record_writer.stop()
    return list(models.CallRecord.objects.order_by("id").values_list("outcome", flat=True))


def test_a_server_s_calls_run_on_its_own_event_loop(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    process_connections.stop()

    async def ask() -> tuple[calls.Answer, set[str]]:
        answer = await calls.arun("ada", "files__echo", {"a": 1})
        return answer, {thread.name for thread in threading.enumerate()}

    answer, names = async_to_sync(serve)(ask)

    assert isinstance(answer, calls.Result)
    assert "toolbelt-plugins" not in names


def test_a_thread_can_call_over_a_server_s_connections(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    process_connections.stop()

    async def ask() -> Any:
        answers: list[Any] = []
        await concurrently.do(lambda: answers.append(connected.content("files__echo", {"a": 1})))
        return answers[0]

    assert async_to_sync(serve)(ask) == {"result": '{"a": 1}'}


def test_connections_are_reopened_after_a_server_ended_without_closing_them(
    script: scripting.Script,
) -> None:
    connected.ready(script, "echo")
    process_connections.stop()

    async def ask() -> None:
        with process_connections.hosted():
            await calls.arun("ada", "files__echo", {})

    async_to_sync(ask)()

    assert connected.content("files__echo", {"a": 2}) == {"result": '{"a": 2}'}


def test_a_call_denied_while_its_upstream_server_connects_is_not_sent(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    calls_before = script.calls
    script.delay(1.0)
    process_connections.stop()

    async def ask() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "files__echo", {}))
        await asyncio.sleep(0.3)
        await concurrently.do(
            lambda: switches.override(connected.OPERATOR, "ada", "files__echo", False, was=None)
        )
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(serve)(ask)

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    assert script.calls == calls_before


def test_a_repeated_call_uses_no_thread(script: scripting.Script, thread_functions: list[str]) -> None:
    connected.ready(script, "echo")
    process_connections.stop()
    ask = call({"a": 1})

    async def twice() -> list[str]:
        await ask()
        thread_functions.clear()
        assert isinstance(await ask(), calls.Result)
        return [*thread_functions]

    assert async_to_sync(serve)(twice) == []
    assert outcomes() == ["ok", "ok"]


def test_a_call_refused_on_the_event_loop_is_recorded(
    script: scripting.Script, thread_functions: list[str]
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    blocking.set_blocked(connected.OPERATOR, "tool", "files__echo", True, was=False)

    answer = async_to_sync(serve)(call())

    assert isinstance(answer, gate.Refusal)
    assert thread_functions == []
    assert outcomes() == ["ok", answer.code]


def test_costly_arguments_are_checked_in_a_thread(
    script: scripting.Script, thread_functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    monkeypatch.setattr(schema, "QUICK_STEPS", 0)

    assert isinstance(async_to_sync(serve)(call({"a": 1})), calls.Result)
    assert thread_functions == ["prepare"]


def test_an_uncached_schema_is_compiled_in_a_thread(
    script: scripting.Script, thread_functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    schema._validator.cache_clear()

    assert isinstance(async_to_sync(serve)(call()), calls.Result)
    assert thread_functions == ["prepare"]


def test_a_thread_writes_the_record_if_the_record_writer_is_full(
    script: scripting.Script, thread_functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    monkeypatch.setattr(record_writer, "has_room", lambda: False)
    monkeypatch.setattr(record_writer, "enqueue", lambda record: False)

    assert isinstance(async_to_sync(serve)(call()), calls.Result)
    assert thread_functions == ["prepare", "record_result"]
    assert outcomes() == ["ok", "ok"]


def test_tools_whose_names_differ_only_in_case_are_called_by_their_own_names(
    script: scripting.Script,
) -> None:
    script.lists(listing.tool("who"), listing.tool("WHO"))
    connected.ready(script)
    keys = {
        tool.upstream_name: tool.key for tool in models.Tool.objects.filter(plugin__name="files", kind="tool")
    }
    assert keys.keys() == {"who", "WHO"}
    connected.grant(*keys.values())
    assert "process" in str(connected.content(keys["who"]))
    assert "process" not in str(connected.content(keys["WHO"]))
