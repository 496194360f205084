"""What would happen to a call with exactly these arguments. Nothing runs, is recorded, or is spent.

The checks are those of a call. What only the call itself finds out is not promised: a change in the meantime, and what
the tool answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import admitting, meta_tools, outcomes
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import plugins
from toolbelt.runtime.calls import admissions, answering, arrival, gates, incoming
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import databases

Would = Literal["run", "wait", "refuse", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What a call would do: run, wait for people, be refused, or nobody can know.

    ``refusal`` is what the call would be answered, or may be if it is unknown; None if it would run. ``notice`` is what
    the model would be told beside the result.
    """

    would: Would
    refusal: admitting.Refusal | None = None
    notice: str = ""

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON document."""
        document: dict[str, Any] = {"would": self.would}
        if self.refusal is not None:
            document |= {key: value for key, value in self.refusal.document().items() if key != "is_error"}
        return document | ({"notice": self.notice} if self.notice else {})


def check(call: incoming.Call, caller: incoming.Caller = incoming.PROGRAM, *, ask: bool = False) -> Preflight:
    """Return what would happen to a call, also of a tool that the agent's own program runs; in a thread that may block.

    ``ask``: people are asked to approve it, as by the call itself, if rules ask. Raise errors.NotFound for an unknown
    agent and errors.Invalid for malformed ids.
    """
    gate = gates.CallGate(call, caller, may_ask=ask)
    try:
        snapshot, resolved, _ = gate.resolve()
        admission = arrival.take_dispatched(gate, resolved)
        if admission is None and gate.recording.tool in meta_tools.DEFINITIONS:
            return _of_meta_tool(gate, resolved, snapshot)
        return _of(admission, "refuse") if admission is not None else _of_tool(gate, resolved, snapshot)
    finally:
        databases.release()


def _of_meta_tool(
    gate: gates.CallGate, resolved: budgets.Resolution, snapshot: resolution.Snapshot
) -> Preflight:
    recording = gate.recording
    if gate.by_dispatch and recording.tool == meta_tools.SEARCH:
        answer = arrival.search(gate, resolved)
    else:
        answer = admitting.meta(resolved, snapshot, recording.tool, recording.arguments)
    return _of(answer, "refuse") if isinstance(answer, admitting.Refusal) else Preflight(would="run")


def _of_tool(gate: gates.CallGate, resolved: budgets.Resolution, snapshot: resolution.Snapshot) -> Preflight:
    arrival.note_tool(gate, snapshot, resolved)
    key, stored = gate.recording.tool, snapshot.catalog
    tool = stored.tools.get(key)
    if tool is not None and stored.runner(tool) == "client" and not plugins.is_loaded(tool.plugin):
        return _judged(admissions.judge(gate, resolved, snapshot))
    server = stored.plugins.get(tool.plugin) if tool is not None else None
    is_upstream = server is not None and bool(server.upstream)
    is_served = tool is None or is_upstream or plugins.serves(tool.plugin, key)
    # No one is asked about a call that cannot run here.
    gate.may_ask = gate.may_ask and is_served
    found = _judged(gate.admit(resolved, snapshot))
    is_away = is_upstream and server is not None and process_connections.is_backing_off(server)
    if found.would != "refuse" and (not is_served or is_away):
        # Another process may run it, and the server may be back.
        return _of(answering.unavailable(key), "unknown")
    return found


def _judged(admission: admitting.Admission | admitting.Refusal) -> Preflight:
    if isinstance(admission, admitting.Refusal):
        return _of(admission, "wait" if admission.code == outcomes.PENDING else "refuse")
    approval = admission.approval
    return Preflight(would="run", notice=answering.notice(approval) if approval is not None else "")


def _of(refusal: admitting.Refusal, would: Would) -> Preflight:
    return Preflight(would=would, refusal=refusal)
