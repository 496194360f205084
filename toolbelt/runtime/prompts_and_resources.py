"""Prompts and resources of upstream servers, requested for an agent through the same checks as calls of tools.

A request is checked when it arrives and again directly before it is sent, waits for a slot as a call does, is recorded
under the key of the entry, and its answer is masked and bounded like a call's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import budgets, calls, resolution
from toolbelt.plugins import contract
from toolbelt.runtime import call_answers, elicitation, gates, record_writer, recording, upstream_calls
from toolbelt.runtime import calls as running
from toolbelt.store import databases

Answer = running.Answer
# Returns the key of the requested entry in the current state; None if there is none.
Find = Callable[[budgets.Resolution], str | None]
# Returns the parameters of the request to the server, given the server's own name of the entry.
Params = Callable[[str], Mapping[str, Any]]

MAX_NAME = 200


class NonToolGate(gates.Gate):
    """The checks of a request for an entry that is not a tool."""

    def __init__(self, *given: Any, find: Find) -> None:
        super().__init__(*given)
        self._find = find

    def admit(
        self, resolved: budgets.Resolution, snapshot: resolution.Snapshot, *, is_quick: bool = False
    ) -> calls.Admission | calls.Refusal:
        """Admit the request or refuse it."""
        key = self._find(resolved)
        if key is None or key != self.made.tool or key not in snapshot.catalog.non_tools:
            return calls.unknown(self.made.tool)
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
    look: gates.Look | None = None,
    progress: upstream_calls.Progress | None = None,
    client: elicitation.Client | None = None,
    client_session: str = "",
) -> Answer:
    """Send an MCP request to the server of an entry, on an event loop; return its answer, or why there is none.

    ``name`` is what was requested, and ``find`` returns the key of that entry. The other arguments are those of
    :func:`calls.arun`.
    """
    made = recording.Recording(
        agent=agent, tool=name[:MAX_NAME], arguments={}, session=session, request_id=request_id
    )
    gate = NonToolGate(made, None, False, may_call, look, find=find)
    await gate.probe()
    known = gate.known() if record_writer.has_room() else None
    if known is not None:
        judged = _judged(gate, method, find, params, known)
    else:
        judged = await gate.in_thread(prepared, gate, method, find, params)
    if not isinstance(judged, gates.Admitted):
        return judged
    return await running.carry_out(made, judged, progress, client, client_session)


def judge_again(agent: str, name: str, find: Find, session: str | None = None) -> calls.Refusal | None:
    """Return why a request that waited for its user may not continue; None if it may. For a thread that may block."""
    made = recording.Recording(agent=agent, tool=name[:MAX_NAME], arguments={}, session=session)
    gate = NonToolGate(made, None, False, lambda: None, find=find)
    try:
        snapshot, resolved, _ = gate.resolve()
        made.tool = find(resolved) or made.tool
        judged = gate.admit(resolved, snapshot)
        return judged if isinstance(judged, calls.Refusal) else None
    finally:
        databases.release()


def prepared(gate: NonToolGate, method: str, find: Find, params: Params) -> Answer | gates.Admitted:
    """Admit a request or refuse it, in a thread that may block."""
    try:
        return _judged(gate, method, find, params, gate.resolve())
    finally:
        databases.release()


def _judged(
    gate: NonToolGate, method: str, find: Find, params: Params, known: gates.Resolved
) -> Answer | gates.Admitted:
    snapshot, resolved, state = known
    made, stored = gate.made, snapshot.catalog
    key = find(resolved)
    if key is not None:
        made.tool, made.plugin = key, stored.tools[key].plugin
        made.arguments = params(stored.tools[key].upstream_name)
    admitted = gate.admit(resolved, snapshot)
    server = stored.plugins.get(made.plugin)
    if isinstance(admitted, calls.Admission) and (server is None or not server.upstream):
        admitted = call_answers.unavailable(made.tool)
    if isinstance(admitted, calls.Refusal):
        made.end(admitted.code, error=admitted.message)
        return admitted
    return gates.Admitted(
        tool=made.tool,
        plugin=made.plugin,
        definition=stored.tools[made.tool],
        server=server,
        arguments=made.arguments,
        context=contract.CallContext(
            agent=made.agent,
            session=made.session or "",
            request_id=made.request_id or "",
            options=None,
            active_tools={},
        ),
        until=made.begun + conf.CALL_SECONDS,
        seconds=conf.CALL_SECONDS,
        gate=gate,
        state=state,
        method=method,
        may_ask=server is not None and elicitation.is_granted(resolved, server),
    )
