"""Calls of tools, from all interfaces: each is checked, checked again before its tool runs, and recorded once.

A refusal is an answer that the model can read, never an exception. An operator's change applies immediately, also to a
call that waits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from typing import Any, TypeGuard

from asgiref.sync import async_to_sync

from toolbelt import conf
from toolbelt.core import admitting, request_key
from toolbelt.core.rules import budgets
from toolbelt.plugins import background, contract, slots
from toolbelt.runtime import counting, environ, plugins, telemetry
from toolbelt.runtime.calls import (
    admissions,
    answering,
    approval_waits,
    arrival,
    asking,
    gates,
    incoming,
    last_checks,
    on_servers,
    preflight,
    watching,
)
from toolbelt.runtime.records import record_writer
from toolbelt.runtime.surfaces import snapshots
from toolbelt.store import clock, databases

# Has a call admitted that the agent's own program runs, and reports its outcome.
admitted = admissions.admitted
# Returns what would happen to a call.
check = preflight.check

RequestKey = request_key.RequestKey
Call = incoming.Call
Caller = incoming.Caller
Result = answering.Result
Answer = answering.Answer
unchecked = answering.unchecked

_slots = slots.Slots()


def run(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    wait: float = 0.0,
) -> Answer:
    """Run a call of a tool or of a meta-tool, in a thread that may block.

    ``wait`` is how long it may wait for people to approve it, in seconds, beside the time that it may take. Raise
    errors.NotFound for an unknown agent and errors.Invalid for malformed ids; anything else is an answer.
    """
    key = RequestKey(agent, session, request_id, subagent)
    return answer_blocking(Call(key=key, tool=tool, arguments=arguments, wait=wait))


async def arun(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    wait: float | None = None,
) -> Answer:
    """Run a call as :func:`run` does, in an event loop. Cancelling it cancels the tool, too.

    By default, it waits for people to approve it as long as the setting TOOLBELT_APPROVAL_WAIT says.
    """
    key = RequestKey(agent, session, request_id, subagent)
    wait = conf.APPROVAL_WAIT if wait is None else wait
    return await answer(Call(key=key, tool=tool, arguments=arguments, wait=wait))


def admit(key: RequestKey, tool: str, arguments: Any) -> admitting.Admission | admitting.Refusal:
    """Admit or refuse a call of a tool (not of a meta-tool) against the surface as it is now, without running it."""
    snapshot, _ = snapshots.take(key)
    resolved = budgets.resolve(snapshot)
    now = clock.now()
    past = counting.past(key, snapshot.session, tool=tool, at=now)
    return admitting.admit(resolved, tool, arguments, hide_denied=conf.HIDE_DENIED, past=past, at=now)


def answer_blocking(call: Call, caller: Caller = incoming.PROGRAM) -> Answer:
    """Answer a call, in a thread that may block. An error of the caller's ``may_call`` is recorded, and raised."""
    answered = _answer_blocking(call, caller)
    if _is_worth_waiting(answered, call) and async_to_sync(_until_decided)(answered, call):
        return _answer_blocking(_again(call), caller)
    return answered


def _answer_blocking(call: Call, caller: Caller) -> Answer:
    gate = gates.CallGate(call, caller, may_ask=True)
    with telemetry.call(gate.recording):
        prepared = arrival.prepare(gate)
        if not isinstance(prepared, gates.Admitted):
            return prepared
        return async_to_sync(carry_out)(prepared)


async def answer(call: Call, caller: Caller = incoming.PROGRAM) -> Answer:
    """Answer a call as :func:`answer_blocking` does, in an event loop. Cancelling it cancels the tool, too."""
    answered = await _answer(call, caller)
    if not _is_worth_waiting(answered, call):
        return answered
    caller.on_wait(True)
    try:
        is_decided = await _until_decided(answered, call)
    finally:
        caller.on_wait(False)
    return await _answer(_again(call), caller) if is_decided else answered


def _is_worth_waiting(answered: Answer, call: Call) -> TypeGuard[admitting.Refusal]:
    return call.wait > 0 and isinstance(answered, admitting.Refusal) and answered.is_pending


async def _until_decided(refusal: admitting.Refusal, call: Call) -> bool:
    """Return whether people decided about a call while it may wait. It has ended, so that nothing else waits for it."""
    key, progress = refusal.approval.key if refusal.approval is not None else "", call.progress

    async def report(seconds: float) -> None:
        if progress is not None:
            # What the tool reports later is more than this.
            await progress(seconds / 1e6, None, f"Waiting for approval {key}.")

    return await approval_waits.until_decided(key, call.wait, report)


def _again(call: Call) -> Call:
    """Return the call, made again now."""
    return dataclasses.replace(call, begun=time.monotonic())


async def _answer(call: Call, caller: Caller) -> Answer:
    gate = gates.CallGate(call, caller, may_ask=True)
    with telemetry.call(gate.recording):
        await gate.probe()
        prepared = arrival.admit_at_once(gate)
        if prepared is None:
            prepared = await gate.in_thread(arrival.prepare, gate)
        return await carry_out(prepared) if isinstance(prepared, gates.Admitted) else prepared


def check_again(call: Call, caller: Caller) -> admitting.Refusal | None:
    """Return why a call that waited for its user may not continue; None if it may. For a thread that may block."""
    gate = gates.CallGate(call, caller)
    gate.is_parked = True
    try:
        snapshot, resolved, _ = gate.resolve()
        if (refusal := arrival.take_dispatched(gate, resolved)) is not None:
            return refusal
        gate.identify(resolved)
        admission = gate.admit(resolved, snapshot)
        return admission if isinstance(admission, admitting.Refusal) else None
    finally:
        databases.release()


async def carry_out(admitted: gates.Admitted) -> Answer:
    """Run an admitted call once its plugin has a free slot, and record the outcome, also of what was approved."""
    gate, approval = admitted.gate, admitted.approval
    try:
        answer = await _carry_out(admitted)
    finally:
        if gate.spent and gate.recording.outcome:
            await asyncio.shield(gate.in_thread(asking.finish, gate.recording.outcome, key=gate.spent.key))
    if gate.spent and approval is not None:
        return dataclasses.replace(answer, notice=answering.notice(approval))
    return answer


async def _carry_out(admitted: gates.Admitted) -> Answer:
    gate, agent = admitted.gate, admitted.gate.call.key.agent
    recording = gate.recording
    if _slots.waiting_of(agent) >= conf.REQUESTS_AT_ONCE // 4:
        # Otherwise one agent's calls could be all requests that this process handles at a time.
        return await gate.in_thread(answering.refuse, recording, answering.too_many(recording.tool))
    ticket = _slots.enter(admitted.plugin, agent, conf.CALLS_PER_PLUGIN)
    run = _run_plugin if admitted.server is None else on_servers.run
    try:
        if not ticket.done():
            await asyncio.wait_for(asyncio.wrap_future(ticket), admitted.left)
        async with watching.until_blocked(admitted):
            returned = await run(admitted, last_check(admitted))
    except Exception as error:
        return await gate.in_thread(answering.record_failure, admitted, error)
    except asyncio.CancelledError:
        await asyncio.shield(gate.in_thread(recording.end, "cancelled"))
        raise
    finally:
        _slots.leave(ticket)
    if gate.can_probe and record_writer.has_room():
        # Nothing of it waits for the database.
        return answering.record_result(recording, returned, admitted.definition, admitted.server)
    return await gate.in_thread(
        answering.record_result, recording, returned, admitted.definition, admitted.server
    )


async def _run_plugin(admitted: gates.Admitted, check: background.Check) -> Any:
    """Return what a plugin of this process returns for a call."""
    key, options = admitted.gate.call.key, admitted.options
    if options:
        namespace = functools.partial(plugins.namespace, admitted.plugin)
        options = environ.fill_options(options, admitted.tool, namespace)
    context = contract.CallContext(
        agent=key.agent,
        session=key.session or "",
        request_id=key.request_id or "",
        options=options,
        active_tools=admitted.active_tools,
    )
    return await plugins.registry().execute(
        admitted.tool, admitted.gate.recording.arguments, call=context, within=admitted.left, check=check
    )


def last_check(admitted: gates.Admitted) -> background.Check:
    """Return the final check of a call, to be awaited on the event loop on which its tool is about to run.

    A call may have waited for a slot, for a plugin to get ready or for a server to connect. The check runs on the event
    loop of the caller, because its threads are those in which the database is read for this caller.
    """
    loop = asyncio.get_running_loop()

    async def ask() -> None:
        gate = admitted.gate
        # Counted only if nothing is left to be decided: what is counted is not judged by its past again.
        is_same = admitted.approval is None and await gate.is_unchanged()
        if not (is_same and gate.count_at_once()):
            await gate.in_thread(last_checks.check_again, admitted)

    async def check() -> None:
        if asyncio.get_running_loop() is loop:
            await ask()
            return
        pending_check = ask()
        try:
            answer = asyncio.run_coroutine_threadsafe(pending_check, loop)
        except RuntimeError:
            # The caller's loop is closed: no caller waits for the answer, and the tool does not run.
            pending_check.close()
            raise
        await asyncio.wrap_future(answer)

    return check
