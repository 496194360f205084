"""The admission of calls: a meta-tool's call is answered immediately, any other one is admitted or refused."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from toolbelt.core import admitting, declared_versions, dispatch, meta_tools, outcomes, schema
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import plugins
from toolbelt.runtime.calls import answering, elicitation, gates, own_tools
from toolbelt.runtime.calls.answering import Answer
from toolbelt.runtime.records import context_use, learning, record_writer, recordings
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import databases

_META_TOOLS = frozenset(meta_tools.SCHEMAS)


def admit_at_once(gate: gates.CallGate) -> Answer | gates.Admitted | None:
    """Admit the call of an upstream server's tool on the event loop; return None if that is slow or needs a thread."""
    cached = gate.cached()
    if cached is None or gate.recording.tool in _META_TOOLS or not record_writer.has_room():
        return None
    stored = cached[0].catalog
    gate.identify(cached[1])
    tool = stored.tools.get(gate.recording.tool)
    if tool is None or not schema.is_ready(declared_versions.offered(tool).input_schema):
        return None
    plugin = stored.plugins.get(tool.plugin)
    if plugin is None or not plugin.upstream or process_connections.is_backing_off(plugin):
        return None
    try:
        return _admit_tool(gate, *cached, is_quick=True)
    except schema.TooComplexError:
        return None


def prepare(gate: gates.CallGate) -> Answer | gates.Admitted:
    """Answer and record a meta-tool's call; admit any other call, or refuse and record it.

    Returns the database connection to the pool, because an admitted call may wait and run for long.
    """
    try:
        return _admit(gate)
    finally:
        databases.release()


def _admit(gate: gates.CallGate) -> Answer | gates.Admitted:
    recording, by_dispatch, is_told = gate.recording, gate.by_dispatch, gate.told is not None
    # In a conversation, they may be offered beside call_tool.
    is_loading = recording.tool in dispatch.LOADING if is_told else not by_dispatch
    if recording.tool in meta_tools.DEFINITIONS and (is_loading or not by_dispatch):
        return _call_meta_tool(recording)
    snapshot, resolved, state = gate.resolve()
    if by_dispatch and recording.tool == meta_tools.SEARCH:
        return _end(recording, search(gate, resolved))
    if (refusal := take_dispatched(gate, resolved)) is not None:
        return answering.refuse(recording, refusal)
    is_dispatched = recording.is_dispatched and recording.key.session is not None
    if is_dispatched and recording.tool in dispatch.LOADING:
        return _call_meta_tool(recording)
    return _admit_tool(gate, snapshot, resolved, state)


def take_dispatched(gate: gates.CallGate, resolved: budgets.Resolution) -> admitting.Refusal | None:
    """Take the tool that is passed to ``call_tool`` as the one that is called; return a refusal if that is wrong."""
    recording = gate.recording
    if not gate.by_dispatch or recording.tool != meta_tools.CALL:
        return None
    parsed_call = dispatch.parse_call(resolved, recording.arguments, is_offered=gate.always_dispatches)
    if isinstance(parsed_call, admitting.Refusal):
        return parsed_call
    # From here on, it is a call of the given tool, and recorded as one.
    recording.tool, recording.arguments = parsed_call
    recording.is_dispatched = True
    return None


def search(gate: gates.CallGate, resolved: budgets.Resolution) -> admitting.MetaAnswer | admitting.Refusal:
    """Return the answer of ``search_tools`` beside ``call_tool``."""
    return dispatch.search_tools(
        resolved,
        gate.recording.arguments,
        is_offered=gate.always_dispatches,
        # The program of a conversation's model may run tools of its own; an MCP client does not.
        includes_own=gate.told is not None,
    )


def _call_meta_tool(recording: recordings.Recording) -> Answer:
    """Answer the call of a meta-tool that lists or loads."""
    return _end(recording, own_tools.call(recording.key, recording.tool, recording.arguments, recording))


def _end(recording: recordings.Recording, result: admitting.MetaAnswer | admitting.Refusal) -> Answer:
    """Return and record the answer of a meta-tool."""
    if isinstance(result, admitting.Refusal):
        return answering.refuse(recording, result)
    context_use.add_result(recording.key.agent, result.content)
    if recording.tool == meta_tools.SEARCH:
        learning.note_search(
            recording.key.agent, recording.key.session, recording.arguments["query"], result.content
        )
    return answering.record_result(recording, result.content)


def _admit_tool(
    gate: gates.CallGate,
    snapshot: resolution.Snapshot,
    resolved: budgets.Resolution,
    state: Hashable,
    *,
    is_quick: bool = False,
) -> Answer | gates.Admitted:
    recording = gate.recording
    note_tool(gate, snapshot, resolved)
    provider = snapshot.catalog.plugins.get(recording.plugin)
    server = provider if provider is not None and provider.upstream else None
    is_served = server is not None or plugins.serves(recording.plugin, recording.tool)
    # No one is asked about a call that cannot run here.
    gate.may_ask = is_served
    admitted = gate.admit(resolved, snapshot, is_quick=is_quick)
    if isinstance(admitted, admitting.Refusal) and (is_served or admitted.code != outcomes.PENDING):
        return answering.refuse(recording, admitted)
    tool = snapshot.catalog.tools[recording.tool]
    if not is_served or isinstance(admitted, admitting.Refusal):
        if snapshot.catalog.runner(tool) == "client" and not plugins.is_loaded(recording.plugin):
            return answering.refuse(recording, admitting.run_by_client(recording.tool))
        plugins.report_unserved(recording.plugin)
        return answering.refuse(
            recording, answering.unavailable(recording.tool), "no plugin of this process serves it"
        )
    if server is not None:
        process_connections.note_answers_elsewhere(server)
    return gates.Admitted(
        gate=gate,
        definition=tool,
        server=server,
        state=state,
        options=admitted.options,
        active_tools={} if server is not None else _by_plugin(resolved),
        may_ask=server is not None and elicitation.is_granted(resolved, server),
        approval=admitted.approval,
    )


def note_tool(gate: gates.CallGate, snapshot: resolution.Snapshot, resolved: budgets.Resolution) -> None:
    """Note the tool that is called, its plugin, and the arguments that it gets."""
    recording = gate.recording
    gate.identify(resolved)
    tool = snapshot.catalog.tools.get(recording.tool)
    if tool is not None:
        recording.plugin = tool.plugin
        recording.arguments = admitting.filled(snapshot.catalog, recording.tool, recording.arguments)


def _by_plugin(resolved: budgets.Resolution) -> Mapping[str, Sequence[str]]:
    tools: dict[str, list[str]] = {}
    for key in resolved.active:
        tools.setdefault(resolved.context.catalog.tools[key].plugin, []).append(key)
    return tools
