"""Prompts and resources of upstream servers, requested for an agent through the same checks as calls of tools.

A request is checked when it arrives and again directly before it is sent, waits for a slot as a call does, is recorded
under the key of the entry, and its answer is masked and bounded like a call's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.core import admitting
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import calls as running
from toolbelt.runtime.calls import answering, elicitation, gates, incoming
from toolbelt.runtime.records import record_writer
from toolbelt.store import databases, holds

Answer = running.Answer

MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is requested: the entry with the key that ``find`` returns in the current state; None if there is none.

    ``params`` returns the parameters of the request, given the server's own name of the entry. Of the values that
    complete an argument, those that ``may_show`` refuses are left out.
    """

    find: Callable[[budgets.Resolution], str | None]
    params: Callable[[str], Mapping[str, Any]]
    may_show: Callable[[budgets.Resolution, str], bool] | None = None


class NonToolGate(gates.CallGate):
    """The checks of a request for an entry that is not a tool."""

    # What the gate decided about last.
    resolved: budgets.Resolution

    def __init__(
        self, call: incoming.Call, target: Target, caller: incoming.Caller = incoming.PROGRAM
    ) -> None:
        super().__init__(call, caller)
        self.target = target
        self.recording.tool, self.recording.arguments = call.tool[:MAX_NAME], {}

    def admit(
        self,
        resolved: budgets.Resolution,
        snapshot: resolution.Snapshot,
        *,
        is_quick: bool = False,
        input_schema: str = "",
    ) -> admitting.Admission | admitting.Refusal:
        """Admit the request or refuse it."""
        self.resolved = resolved
        key = self.target.find(resolved)
        if key is None or key != self.recording.tool or key not in snapshot.catalog.non_tools:
            return admitting.unknown(self.recording.tool)
        if holds.is_stopped(snapshot.catalog, key):
            return gates.stopped(key)
        refusal = admitting.not_active(resolved, key, hide_denied=conf.HIDE_DENIED)
        self.recording.note_decision(resolved, is_refused=refusal is not None)
        return refusal or admitting.Admission(tool=key)


async def request(call: incoming.Call, target: Target, caller: incoming.Caller) -> Answer:
    """Send an MCP request to the server of an entry, on an event loop; return its answer, or why there is none.

    The ``tool`` of the call is the name under which the entry was requested.
    """
    gate = NonToolGate(call, target, caller)
    await gate.probe()
    cached = gate.cached() if record_writer.has_room() else None
    admitted = _admit(gate, cached) if cached is not None else await gate.in_thread(prepared, gate)
    if not isinstance(admitted, gates.Admitted):
        return admitted
    answer = await running.carry_out(admitted)
    return answer if target.may_show is None else _shown(answer, gate.resolved, target.may_show)


def _shown(
    answer: Answer, resolved: budgets.Resolution, may_show: Callable[[budgets.Resolution, str], bool]
) -> Answer:
    completion = (answer.mcp or {}).get("completion")
    if isinstance(answer, admitting.Refusal) or not isinstance(completion, Mapping):
        return answer
    values = [value for value in completion.get("values", ()) if may_show(resolved, value)]
    shown = {"values": values, "hasMore": bool(completion.get("hasMore"))}
    # Any other total may count what is left out.
    if completion.get("total") == len(values):
        shown["total"] = len(values)
    return dataclasses.replace(answer, mcp={**(answer.mcp or {}), "completion": shown})


def check_again(call: incoming.Call, target: Target) -> admitting.Refusal | None:
    """Return why a request that waited for its user may not continue; None if it may. For a thread that may block."""
    gate = NonToolGate(call, target)
    try:
        snapshot, resolved, _ = gate.resolve()
        gate.recording.tool = target.find(resolved) or gate.recording.tool
        admission = gate.admit(resolved, snapshot)
        return admission if isinstance(admission, admitting.Refusal) else None
    finally:
        databases.release()


def prepared(gate: NonToolGate) -> Answer | gates.Admitted:
    """Admit a request or refuse it, in a thread that may block."""
    try:
        return _admit(gate, gate.resolve())
    finally:
        databases.release()


def _admit(gate: NonToolGate, current: gates.Resolved) -> Answer | gates.Admitted:
    snapshot, resolved, state = current
    recording, stored = gate.recording, snapshot.catalog
    key = gate.target.find(resolved)
    if key is not None:
        recording.tool, recording.plugin = key, stored.tools[key].plugin
        recording.arguments = gate.target.params(stored.tools[key].upstream_name)
    admitted = gate.admit(resolved, snapshot)
    server = stored.plugins.get(recording.plugin)
    if isinstance(admitted, admitting.Admission) and (server is None or not server.upstream):
        admitted = answering.unavailable(recording.tool)
    if isinstance(admitted, admitting.Refusal):
        recording.end(admitted.code, error=admitted.message)
        return admitted
    return gates.Admitted(
        gate=gate,
        definition=stored.tools[recording.tool],
        server=server,
        state=state,
        may_ask=server is not None and elicitation.is_granted(resolved, server),
    )
