"""Tests that a call denied after its admission but before its tool started never starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import Error, InterfaceError, OperationalError

from tests import concurrently
from tests.plugins.upstream import scripting
from tests.runtime import connected, sample_plugins
from tests.runtime.conftest import OPERATOR, Install
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking, entries
from toolbelt.control.config import belts
from toolbelt.core import admitting as gate
from toolbelt.runtime import calls
from toolbelt.runtime.calls import watching
from toolbelt.runtime.surfaces import snapshots
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import holds

# Calls and denials come from separate threads.
pytestmark = pytest.mark.django_db(transaction=True)

DENIALS: dict[str, Callable[[], object]] = {
    "a tool blocked for everyone": lambda: blocking.set_blocked(
        OPERATOR, "tool", "kb__hold", True, was=False
    ),
    "a plugin blocked for everyone": lambda: blocking.set_blocked(OPERATOR, "plugin", "kb", True, was=False),
    "a toolkit blocked for everyone": lambda: blocking.set_blocked(
        OPERATOR, "toolkit", "holding", True, was=False
    ),
    "a switch that is off": lambda: switches.flip(OPERATOR, "ada", "holding", False, was=True),
    "an override that is off": lambda: switches.override(OPERATOR, "ada", "kb__hold", False, was=None),
    "an agent that is archived": lambda: agents.archive(OPERATOR.replace(confirm=True), "ada", True),
}


def plain() -> calls.Call:
    return calls.Call(key=calls.RequestKey("ada"), tool="kb__plain", arguments={})


@pytest.fixture
def kb(install: Install, settings: Any) -> None:
    sample_plugins.reset()
    settings.TOOLBELT_CALLS_PER_PLUGIN = 1
    install(
        "Kb",
        agents=[{"key": "ada", "tools": ["kb__hold", "kb__hang", "kb__plain"]}],
    )
    belts.import_(OPERATOR, {"toolkits": [{"key": "holding", "members": ["kb__hold"]}]})
    switches.flip(OPERATOR, "ada", "holding", True, was=None)


async def queued(number: int) -> list[asyncio.Task[calls.Answer]]:
    """Start a call that occupies the plugin's only slot, and this many that wait for it."""
    tasks = [asyncio.create_task(calls.arun("ada", "kb__hold", {}))]
    await until(lambda: sample_plugins.HOLDING)
    tasks += [asyncio.create_task(calls.arun("ada", "kb__hold", {})) for _ in range(number)]
    # Each is admitted in a thread before it waits for a slot.
    await until(lambda: calls._slots.waiting("kb") == number)
    return tasks


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 (the condition is set in other threads)
            await asyncio.sleep(0.01)


def outcomes() -> list[str]:
    return list(models.CallRecord.objects.order_by("id").values_list("outcome", flat=True))


@pytest.mark.parametrize("denial", DENIALS)
def test_a_call_waiting_for_a_slot_does_not_start_after_a_denial(kb: None, denial: str) -> None:
    async def denied_while_queued() -> list[calls.Answer]:
        tasks = await queued(10)
        await concurrently.do(DENIALS[denial])
        sample_plugins.RELEASED.set()
        return list(await asyncio.gather(*tasks))

    answers = async_to_sync(denied_while_queued)()

    assert sample_plugins.HOLDING == [1]
    assert all(isinstance(answer, gate.Refusal) for answer in answers[1:])
    assert {answer.code for answer in answers[1:] if isinstance(answer, gate.Refusal)} <= {
        "tool-denied",
        "unknown-tool",
    }
    assert len(outcomes()) == 11
    assert "ok" not in outcomes()[1:]


def test_a_call_denied_while_waiting_is_recorded_as_such(kb: None) -> None:
    async def denied_while_queued() -> None:
        tasks = await queued(1)
        await concurrently.do(DENIALS["a switch that is off"])
        sample_plugins.RELEASED.set()
        await asyncio.gather(*tasks)

    async_to_sync(denied_while_queued)()

    record = models.CallRecord.objects.get(outcome="tool-denied")
    assert record.error.startswith("Denied while it waited: ")


def test_blocking_a_tool_cancels_its_running_call(kb: None) -> None:
    async def stopped_while_running() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "kb__hang", {}))
        await until(sample_plugins.STARTED.is_set)
        await asyncio.sleep(2 * watching.WATCH_AFTER)
        await concurrently.do(lambda: blocking.set_blocked(OPERATOR, "tool", "kb__hang", True, was=False))
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(stopped_while_running)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    assert sample_plugins.CANCELLED.wait(5)
    assert models.CallRecord.objects.get().error.startswith("Cancelled while it ran: ")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Yield a function that holds a block of the plugin, as if it could not be stored."""
    monkeypatch.setattr(holds, "_keep_storing", lambda retry_seconds: None)
    yield lambda: holds.add("plugin", "kb", lambda: None)
    holds.forget()


def test_a_stop_that_is_not_stored_cancels_running_calls(kb: None, held: Callable[[], None]) -> None:
    async def stopped_while_running() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "kb__hang", {}))
        await until(sample_plugins.STARTED.is_set)
        await asyncio.sleep(2 * watching.WATCH_AFTER)
        await concurrently.do(held)
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(stopped_while_running)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    assert sample_plugins.CANCELLED.wait(5)


def test_a_stop_that_is_not_stored_reaches_calls_that_wait_for_a_slot(
    kb: None, held: Callable[[], None]
) -> None:
    async def stopped_while_waiting() -> list[calls.Answer]:
        tasks = await queued(2)
        await concurrently.do(held)
        sample_plugins.RELEASED.set()
        return list(await asyncio.gather(*tasks))

    answers = async_to_sync(stopped_while_waiting)()

    assert len(sample_plugins.HOLDING) == 1
    assert [answer.document().get("code") for answer in answers[1:]] == ["tool-denied", "tool-denied"]


def test_blocking_a_tool_cancels_a_call_that_has_just_started(kb: None) -> None:
    async def stopped_while_running() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "kb__hang", {}))
        await until(sample_plugins.STARTED.is_set)
        # Before the call watches for changes.
        await concurrently.do(lambda: blocking.set_blocked(OPERATOR, "tool", "kb__hang", True, was=False))
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(stopped_while_running)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"


def test_blocking_another_tool_does_not_cancel_a_call(kb: None) -> None:
    async def other_stopped() -> calls.Answer:
        first = await queued(0)
        await concurrently.do(lambda: blocking.set_blocked(OPERATOR, "tool", "kb__plain", True, was=False))
        await asyncio.sleep(2 * watching.WATCH_AFTER)
        sample_plugins.RELEASED.set()
        return await asyncio.wait_for(first[0], 20)

    assert isinstance(async_to_sync(other_stopped)(), calls.Result)


def test_switching_off_a_toolkit_does_not_cancel_a_running_call(kb: None) -> None:
    async def switched_off() -> calls.Answer:
        first = await queued(0)
        await concurrently.do(DENIALS["a switch that is off"])
        await asyncio.sleep(2 * watching.WATCH_AFTER)
        sample_plugins.RELEASED.set()
        return await asyncio.wait_for(first[0], 20)

    assert isinstance(async_to_sync(switched_off)(), calls.Result)


def test_a_call_denied_while_its_plugin_initializes_does_not_start(install: Install) -> None:
    sample_plugins.reset()
    install("Slow", agents=[{"key": "ada", "tools": ["slow__run"]}])

    async def denied_while_it_gets_ready() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "slow__run", {}))
        await until(sample_plugins.STARTED.is_set)
        await concurrently.do(lambda: blocking.set_blocked(OPERATOR, "plugin", "slow", True, was=False))
        sample_plugins.RELEASED.set()
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(denied_while_it_gets_ready)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    assert sample_plugins.HOLDING == []


def test_a_call_whose_options_changed_while_waiting_must_be_repeated(kb: None) -> None:
    switches.flip(OPERATOR, "ada", "holding", None, was=True)

    async def changed_while_queued() -> list[calls.Answer]:
        tasks = await queued(1)
        tools = [{"tool": "kb__hold", "options": {"depth": 1}}]
        await concurrently.do(lambda: entries.change(OPERATOR, "agent", "ada", {"tools": tools}))
        sample_plugins.RELEASED.set()
        return list(await asyncio.gather(*tasks))

    _, answer = async_to_sync(changed_while_queued)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-unavailable"
    assert "call it again" in answer.message


def test_a_caller_whose_permission_is_withdrawn_gets_an_error_and_no_tool_runs(kb: None) -> None:
    def may_call() -> None:
        raise PermissionError("The token was revoked.")

    with pytest.raises(PermissionError, match="revoked"):
        calls.answer_blocking(plain(), calls.Caller(may_call=may_call))

    assert outcomes() == ["tool-denied"]


@pytest.mark.parametrize("error", [OperationalError("the server is away"), InterfaceError("closed")])
def test_a_call_that_cannot_be_checked_again_does_not_start(
    kb: None, monkeypatch: pytest.MonkeyPatch, error: Error
) -> None:
    def break_the_database() -> None:
        def refuse(*about: Any) -> Any:
            raise error

        monkeypatch.setattr(snapshots, "take", refuse)

    async def broken_while_queued() -> list[calls.Answer]:
        tasks = await queued(1)
        break_the_database()
        sample_plugins.RELEASED.set()
        return list(await asyncio.gather(*tasks))

    _, answer = async_to_sync(broken_while_queued)()

    assert sample_plugins.HOLDING == [1]
    assert answer == calls.unchecked()


@pytest.mark.parametrize("error", [OperationalError("the server is away"), InterfaceError("closed")])
def test_a_database_error_while_rechecking_the_token_prevents_the_call(kb: None, error: Error) -> None:
    def may_call() -> None:
        raise error

    assert calls.answer_blocking(plain(), calls.Caller(may_call=may_call)) == calls.unchecked()


def test_a_call_denied_while_its_server_connects_is_not_sent(script: scripting.Script) -> None:
    connected.ready(script, "echo")
    calls_before = script.calls
    script.delay(1.0)
    process_connections.stop()

    async def denied_while_it_connects() -> calls.Answer:
        task = asyncio.create_task(calls.arun("ada", "files__echo", {}))
        await asyncio.sleep(0.3)
        await concurrently.do(lambda: switches.override(OPERATOR, "ada", "files__echo", False, was=None))
        return await asyncio.wait_for(task, 20)

    answer = async_to_sync(denied_while_it_connects)()

    assert isinstance(answer, gate.Refusal)
    assert answer.code == "tool-denied"
    time.sleep(0.2)
    assert script.calls == calls_before
