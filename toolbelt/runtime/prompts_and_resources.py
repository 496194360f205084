"""Prompts and resources of upstream servers, requested for an agent through the same checks as calls of tools.

A request is checked when it arrives and again directly before it is sent, waits for a slot as a call does, is recorded
under the key of the entry, and its answer is masked and bounded like a call's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import budgets, calls, resolution
from toolbelt.plugins import contract
from toolbelt.runtime import call_answers, elicitation, gates, record_writer, recordings, upstream_calls
from toolbelt.runtime import calls as running
from toolbelt.store import databases, holds

Answer = running.Answer
# Returns the key of the requested entry in the current state; None if there is none.
Find = Callable[[budgets.Resolution], str | None]
# Returns the parameters of the request to the server, given the server's own name of the entry.
Params = Callable[[str], Mapping[str, Any]]
# Returns whether the agent may learn a value that the server proposes.
MayShow = Callable[[budgets.Resolution, str], bool]

MAX_NAME = 200


class NonToolGate(gates.CallGate):
    """The checks of a request for an entry that is not a tool."""

    # What the gate decided about last.
    resolved: budgets.Resolution

    def __init__(self, *arguments: Any, find: Find) -> None:
        super().__init__(*arguments)
        self._find = find

    def admit(
        self,
        resolved: budgets.Resolution,
        snapshot: resolution.Snapshot,
        *,
        is_quick: bool = False,
        input_schema: str = "",
    ) -> calls.Admission | calls.Refusal:
        """Admit the request or refuse it."""
        self.resolved = resolved
        key = self._find(resolved)
        if key is None or key != self.recording.tool or key not in snapshot.catalog.non_tools:
            return calls.unknown(self.recording.tool)
        if holds.is_stopped(snapshot.catalog, key):
            return gates.stopped(key)
        return calls.not_active(resolved, key, hide_denied=conf.HIDE_DENIED) or calls.Admission(tool=key)


async def request(
    agent: str,
    method: str,
    name: str,
    find: Find,
    params: Params,
    *,
    session: str | None = None,
    request_id: str | None = None,
    may_call: Callable[[], object] = lambda: None,
    probe: gates.Probe | None = None,
    progress: upstream_calls.Progress | None = None,
    client: elicitation.Client | None = None,
    client_session: str = "",
    may_show: MayShow | None = None,
) -> Answer:
    """Send an MCP request to the server of an entry, on an event loop; return its answer, or why there is none.

    ``name`` is what was requested, and ``find`` returns the key of that entry. Of the values that complete an
    argument, those that ``may_show`` refuses are left out. The other arguments are those of :func:`calls.arun`.
    """
    recording = recordings.Recording(
        agent=agent, tool=name[:MAX_NAME], arguments={}, session=session, request_id=request_id
    )
    gate = NonToolGate(recording, None, False, may_call, probe, find=find)
    await gate.probe()
    cached = gate.cached() if record_writer.has_room() else None
    if cached is not None:
        admitted = _admit(gate, method, find, params, cached)
    else:
        admitted = await gate.in_thread(prepared, gate, method, find, params)
    if not isinstance(admitted, gates.Admitted):
        return admitted
    answer = await running.carry_out(recording, admitted, progress, client, client_session)
    return _shown(answer, gate.resolved, may_show) if may_show is not None else answer


def _shown(answer: Answer, resolved: budgets.Resolution, may_show: MayShow) -> Answer:
    completion = (answer.mcp or {}).get("completion")
    if isinstance(answer, calls.Refusal) or not isinstance(completion, Mapping):
        return answer
    values = [value for value in completion.get("values", ()) if may_show(resolved, value)]
    # How many there are in all would count what is left out.
    shown = {"values": values, "hasMore": bool(completion.get("hasMore"))}
    return dataclasses.replace(answer, mcp={**(answer.mcp or {}), "completion": shown})


def check_again(agent: str, name: str, find: Find, session: str | None = None) -> calls.Refusal | None:
    """Return why a request that waited for its user may not continue; None if it may. For a thread that may block."""
    recording = recordings.Recording(agent=agent, tool=name[:MAX_NAME], arguments={}, session=session)
    gate = NonToolGate(recording, None, False, lambda: None, find=find)
    try:
        snapshot, resolved, _ = gate.resolve()
        recording.tool = find(resolved) or recording.tool
        admission = gate.admit(resolved, snapshot)
        return admission if isinstance(admission, calls.Refusal) else None
    finally:
        databases.release()


def prepared(gate: NonToolGate, method: str, find: Find, params: Params) -> Answer | gates.Admitted:
    """Admit a request or refuse it, in a thread that may block."""
    try:
        return _admit(gate, method, find, params, gate.resolve())
    finally:
        databases.release()


def _admit(
    gate: NonToolGate, method: str, find: Find, params: Params, current: gates.Resolved
) -> Answer | gates.Admitted:
    snapshot, resolved, state = current
    recording, stored = gate.recording, snapshot.catalog
    key = find(resolved)
    if key is not None:
        recording.tool, recording.plugin = key, stored.tools[key].plugin
        recording.arguments = params(stored.tools[key].upstream_name)
    admitted = gate.admit(resolved, snapshot)
    server = stored.plugins.get(recording.plugin)
    if isinstance(admitted, calls.Admission) and (server is None or not server.upstream):
        admitted = call_answers.unavailable(recording.tool)
    if isinstance(admitted, calls.Refusal):
        recording.end(admitted.code, error=admitted.message)
        return admitted
    return gates.Admitted(
        tool=recording.tool,
        plugin=recording.plugin,
        definition=stored.tools[recording.tool],
        server=server,
        arguments=recording.arguments,
        context=contract.CallContext(
            agent=recording.agent,
            session=recording.session or "",
            request_id=recording.request_id or "",
            options=None,
            active_tools={},
        ),
        until=recording.begun + conf.CALL_SECONDS,
        seconds=conf.CALL_SECONDS,
        gate=gate,
        state=state,
        method=method,
        may_ask=server is not None and elicitation.is_granted(resolved, server),
    )
