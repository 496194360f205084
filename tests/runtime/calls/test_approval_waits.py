"""Tests of calls that wait for people without a slot, a thread or a connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.runtime.calls import asked
from tests.runtime.conftest import OPERATOR
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.runtime import calls
from toolbelt.runtime.calls import approval_waits


@pytest.mark.django_db(transaction=True)
def test_a_call_waits_without_a_slot_and_runs_as_soon_as_it_is_approved(
    transactional_db: None, ran: list[Any], settings: Any
) -> None:
    settings.TOOLBELT_CALLS_PER_PLUGIN = 1

    async def act() -> None:
        waits = [
            asyncio.create_task(calls.arun("ada", "kb__search", asked.REFUND, wait=30)) for _ in range(3)
        ]
        async with asyncio.timeout(20):
            while approval_waits.waiting() < 3:  # noqa: ASYNC110 (set by other tasks)
                await asyncio.sleep(0.01)
            # Its slot is free for another call.
            assert asked.code(await calls.arun("ada", "kb__search", {"query": "x"})) == "ok"
            await concurrently.do(asked.approve)
            # One of three spends it, and the others wait for another approval.
            done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert [asked.code(task.result()) for task in done if asked.code(task.result()) == "ok"] == ["ok"]
        for task in others:
            task.cancel()
        await asyncio.wait(others)

    async_to_sync(act)()
    assert ran == [{"query": "x"}, asked.REFUND]
    assert approval_waits.waiting() == 0


@pytest.mark.django_db(transaction=True)
def test_a_wait_ends_with_a_rejection_with_silence_and_when_too_many_wait(
    transactional_db: None, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        waiting = asyncio.create_task(calls.arun("ada", "kb__search", asked.REFUND, wait=30))
        async with asyncio.timeout(20):
            while not approval_waits.waiting():  # noqa: ASYNC110 (set by another task)
                await asyncio.sleep(0.01)
            await concurrently.do(lambda: call_approvals.reject(asked.OLIVE, asked.latest().key))
            assert asked.code(await waiting) == "approval-rejected"
            assert (
                asked.code(await calls.arun("bo", "kb__search", asked.REFUND, wait=0.1)) == "approval-pending"
            )
            await concurrently.do(lambda: entries.put(OPERATOR, "gate_rule", {**asked.RULE, "expires": 1}))
            assert (
                asked.code(await calls.arun("bo", "kb__search", asked.REFUND, wait=30)) == "approval-expired"
            )
            monkeypatch.setattr(approval_waits, "MAX_WAITING", 0)
            assert (
                asked.code(await calls.arun("bo", "kb__search", asked.REFUND, wait=30)) == "approval-pending"
            )

    async_to_sync(act)()
    assert ran == []
