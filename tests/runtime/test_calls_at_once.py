"""Calls of an ASGI server's clients run on its own event loop, and are checked there if that is quick."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.plugins.upstream import scripting
from tests.runtime import connected
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
from toolbelt.core import calls as gate
from toolbelt.core import schema
from toolbelt.runtime import (
    calls,
    gates,
    record_writer,
    request_contexts,
    snapshots,
    surfaces,
    threads,
    upstream_connections,
)
from toolbelt.store import state_probe

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the names of what threads were taken for, while records are written behind the calls."""
    taken: list[str] = []
    run = threads.run

    async def noted(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        taken.append(function.__name__)
        return await run(function, *arguments, **options)

    monkeypatch.setattr(threads, "run", noted)
    record_writer.start()
    yield taken
    record_writer.stop()


async def served(ask: Callable[[], Awaitable[T]]) -> T:
    """Return what is asked on the event loop of a server, and end its connections as the server does."""
    with upstream_connections.hosted():
        try:
            return await ask()
        finally:
            await concurrently.do(upstream_connections.stop)


def look() -> gates.Look:
    """Return a function that returns the current request context of ada, and keeps returning it."""
    snapshot, source = snapshots.take("ada")
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
    return lambda: calls.arun("ada", "files__echo", arguments or {}, look=seen)


def outcomes() -> list[str]:
    record_writer.stop()
    return list(models.CallRecord.objects.order_by("id").values_list("outcome", flat=True))


def test_calls_of_a_server_run_on_its_own_event_loop(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    upstream_connections.stop()

    async def ask() -> tuple[calls.Answer, set[str]]:
        answer = await calls.arun("ada", "files__echo", {"a": 1})
        return answer, {thread.name for thread in threading.enumerate()}

    answer, names = async_to_sync(served)(ask)

    assert isinstance(answer, calls.Result)
    assert "toolbelt-plugins" not in names


def test_a_thread_may_call_over_the_connections_of_a_server(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    upstream_connections.stop()

    async def ask() -> Any:
        answers: list[Any] = []
        await concurrently.do(lambda: answers.append(connected.content("files__echo", {"a": 1})))
        return answers[0]

    assert async_to_sync(served)(ask) == {"result": '{"a": 1}'}


def test_after_a_server_that_ended_without_a_word_its_connections_are_made_anew(
    script: scripting.Script,
) -> None:
    connected.ready(script, "echo")
    upstream_connections.stop()

    async def ask() -> None:
        with upstream_connections.hosted():
            await calls.arun("ada", "files__echo", {})

    async_to_sync(ask)()

    assert connected.content("files__echo", {"a": 2}) == {"result": '{"a": 2}'}


def test_a_call_that_is_denied_while_its_server_connects_does_not_reach_it(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    calls_before = script.calls
    script.delay(1.0)
    upstream_connections.stop()

    async def ask() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "files__echo", {}))
        await asyncio.sleep(0.3)
        await concurrently.do(
            lambda: switches.override(connected.OPERATOR, "ada", "files__echo", False, was=None)
        )
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(served)(ask)

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    assert script.calls == calls_before


def test_a_call_of_what_was_called_before_takes_no_thread(script: scripting.Script, taken: list[str]) -> None:
    connected.ready(script, "echo")
    upstream_connections.stop()
    ask = call({"a": 1})

    async def twice() -> list[str]:
        await ask()
        taken.clear()
        assert isinstance(await ask(), calls.Result)
        return [*taken]

    assert async_to_sync(served)(twice) == []
    assert outcomes() == ["ok", "ok"]


def test_a_call_that_is_refused_at_once_is_recorded(script: scripting.Script, taken: list[str]) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    blocking.set_blocked(connected.OPERATOR, "tool", "files__echo", True, was=False)

    answer = async_to_sync(served)(call())

    assert isinstance(answer, gate.Refusal)
    assert taken == []
    assert outcomes() == ["ok", answer.code]


def test_arguments_that_take_long_to_check_are_checked_in_a_thread(
    script: scripting.Script, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    monkeypatch.setattr(schema, "QUICK_STEPS", 0)

    assert isinstance(async_to_sync(served)(call({"a": 1})), calls.Result)
    assert taken == ["prepare"]


def test_a_schema_that_was_never_read_is_read_in_a_thread(
    script: scripting.Script, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    schema._validator.cache_clear()

    assert isinstance(async_to_sync(served)(call()), calls.Result)
    assert taken == ["prepare"]


def test_with_no_room_for_its_record_a_call_ends_in_a_thread_that_writes_it(
    script: scripting.Script, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.ready(script, "echo")
    connected.content("files__echo")
    monkeypatch.setattr(record_writer, "has_room", lambda: False)
    monkeypatch.setattr(record_writer, "take", lambda record: False)

    assert isinstance(async_to_sync(served)(call()), calls.Result)
    assert taken == ["prepare", "answered"]
    assert outcomes() == ["ok", "ok"]
