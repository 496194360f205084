"""Calls of tools, from all interfaces: each is checked, checked again before its tool runs, and recorded once.

A refusal is an answer that the model can read, never an exception. An operator's change applies immediately, also to a
call that waits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync

from toolbelt import conf
from toolbelt.core import budgets, calls, dispatch, meta_tools
from toolbelt.plugins import slots
from toolbelt.runtime import (
    admissions,
    call_admission,
    call_answers,
    call_watch,
    elicitation,
    environ,
    gates,
    plugins,
    record_writer,
    recordings,
    snapshots,
    telemetry,
    upstream_calls,
)
from toolbelt.store import databases

# Has a call admitted that the agent's own program runs, and reports its outcome.
admitted = admissions.admitted

Result = call_answers.Result
Answer = call_answers.Answer
unchecked = call_answers.unchecked

_slots = slots.Slots()


def admit(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> calls.Admission | calls.Refusal:
    """Admit or refuse a call of a tool (not of a meta-tool) against the surface as it is now, without running it."""
    snapshot, _ = snapshots.take(agent, session, request_id, subagent)
    return calls.admit(budgets.resolve(snapshot), tool, arguments, hide_denied=conf.HIDE_DENIED)


def run(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    progress: upstream_calls.Progress | None = None,
    *,
    by_dispatch: bool = False,
    may_call: Callable[[], object] = lambda: None,
) -> Answer:
    """Run a call of a tool or of a meta-tool, in a thread that may block.

    ``progress`` is called with the progress of an upstream server's tool, on the event loop of those servers. With
    ``by_dispatch``, the agent has ``call_tool`` instead of the meta-tools that load (see toolbelt.core.dispatch).
    ``may_call`` is called directly before the tool runs, in a thread that may block, and raises an error if the caller
    may no longer call, for example because its token was revoked. The error is recorded, and raised here.

    Raise errors.NotFound for an unknown agent and errors.Invalid for malformed ids; anything else is an answer.
    """
    recording = recordings.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    with telemetry.call(recording):
        prepared = call_admission.prepare(gates.CallGate(recording, subagent, by_dispatch, may_call))
        if not isinstance(prepared, gates.Admitted):
            return prepared
        return async_to_sync(carry_out)(recording, prepared, progress)


async def arun(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    progress: upstream_calls.Progress | None = None,
    *,
    by_dispatch: bool = False,
    may_call: Callable[[], object] = lambda: None,
    probe: gates.Probe | None = None,
    client: elicitation.Client | None = None,
    client_session: str = "",
) -> Answer:
    """Run a call as :func:`run` does, in an event loop. Cancelling it cancels the tool, too.

    ``client`` is the client behind the call, whose user a tool of an upstream server may have questions for.
    ``client_session`` is a digest of the session that an MCP client has of its own: without a ``session``, the state
    that an upstream server keeps for a connection is that client's.

    With ``probe``, the state and the token are read on the event loop, and threads are used only for work that takes
    long, or whose data is not cached in this process.
    """
    recording = recordings.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    gate = gates.CallGate(recording, subagent, by_dispatch, may_call, probe)
    with telemetry.call(recording):
        await gate.probe()
        prepared = call_admission.admit_at_once(gate)
        if prepared is None:
            prepared = await gate.in_thread(call_admission.prepare, gate)
        if not isinstance(prepared, gates.Admitted):
            return prepared
        return await carry_out(recording, prepared, progress, client, client_session)


def check_again(
    agent: str, tool: str, arguments: Any, session: str | None = None, *, by_dispatch: bool = False
) -> calls.Refusal | None:
    """Return why a call that waited for its user may not continue; None if it may. For a thread that may block."""
    recording = recordings.Recording(agent=agent, tool=tool, arguments=arguments, session=session)
    gate = gates.CallGate(recording, None, by_dispatch, lambda: None)
    try:
        snapshot, resolved, _ = gate.resolve()
        if by_dispatch and tool == meta_tools.CALL:
            parsed_call = dispatch.parse_call(resolved, arguments)
            if isinstance(parsed_call, calls.Refusal):
                return parsed_call
            recording.tool, recording.arguments = parsed_call
            gate.is_dispatched = True
        admission = gate.admit(resolved, snapshot)
        return admission if isinstance(admission, calls.Refusal) else None
    finally:
        databases.release()


async def carry_out(
    recording: recordings.Recording,
    admitted: gates.Admitted,
    progress: upstream_calls.Progress | None,
    client: elicitation.Client | None = None,
    client_session: str = "",
) -> Answer:
    """Run an admitted call once its plugin has a free slot, and record the outcome."""
    gate = admitted.gate
    if _slots.waiting_of(recording.agent) >= conf.REQUESTS_AT_ONCE // 4:
        # Otherwise one agent's calls could be all requests that this process handles at a time.
        return await gate.in_thread(call_answers.refuse, recording, call_answers.too_many(recording.tool))
    ticket = _slots.enter(admitted.plugin, recording.agent, conf.CALLS_PER_PLUGIN)
    try:
        if not ticket.done():
            await asyncio.wait_for(asyncio.wrap_future(ticket), admitted.left)
        returned = await call_watch.run_until_blocked(
            admitted, _execute(admitted, progress, client, client_session)
        )
    except Exception as error:
        return await gate.in_thread(call_answers.record_failure, recording, admitted, error)
    except asyncio.CancelledError:
        await asyncio.shield(gate.in_thread(recording.end, "cancelled"))
        raise
    finally:
        _slots.leave(ticket)
    if gate.can_probe and record_writer.has_room():
        # Nothing of it waits for the database.
        return call_answers.record_result(recording, returned, admitted.definition)
    return await gate.in_thread(call_answers.record_result, recording, returned, admitted.definition)


async def _execute(
    admitted: gates.Admitted,
    progress: upstream_calls.Progress | None,
    client: elicitation.Client | None,
    client_session: str,
) -> Any:
    check = last_check(admitted)
    if admitted.server is not None:
        context = admitted.context
        features = elicitation.Features(admitted, admitted.server, client)
        if client is not None and client.resumed:
            await features.check_answers()
        return await upstream_calls.call(
            admitted.server,
            admitted.definition,
            admitted.arguments,
            left=features.left,
            owner=upstream_calls.ConnectionOwner(
                agent=context.agent, session=context.session, client=client_session
            ),
            in_thread=admitted.gate.in_thread,
            progress=progress,
            check=check,
            features=features,
            method=admitted.method,
        )
    context = admitted.context
    if context.options:
        namespace = functools.partial(plugins.namespace, admitted.plugin)
        options = environ.fill_options(context.options, admitted.tool, namespace)
        context = dataclasses.replace(context, options=options)
    return await plugins.registry().execute(
        admitted.tool, admitted.arguments, call=context, within=admitted.left, check=check
    )


def last_check(admitted: gates.Admitted) -> Callable[[], Awaitable[None]]:
    """Return the final check of a call, to be awaited on the event loop on which its tool is about to run.

    A call may have waited for a slot, for a plugin to get ready or for a server to connect. The check runs on the event
    loop of the caller, because its threads are those in which the database is read for this caller.
    """
    loop = asyncio.get_running_loop()

    async def ask() -> None:
        if not await admitted.gate.is_unchanged():
            await admitted.gate.in_thread(gates.check_again, admitted)

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
