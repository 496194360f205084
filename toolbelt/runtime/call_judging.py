"""The judgment of a call: answered at once if it is a meta-tool's, admitted for its tool, or refused."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from toolbelt import conf
from toolbelt.core import budgets, calls, dispatch, meta_tools, resolution, schema
from toolbelt.plugins import contract
from toolbelt.runtime import (
    call_answers,
    context_use,
    elicitation,
    gates,
    learning,
    plugins,
    record_writer,
    recording,
    upstream_connections,
)
from toolbelt.runtime import meta_tools as own_tools
from toolbelt.runtime.call_answers import Answer
from toolbelt.store import databases

_META_TOOLS = frozenset(meta_tools.SCHEMAS)


def judge_at_once(gate: gates.Gate) -> Answer | gates.Admitted | None:
    """Judge the call of an upstream server's tool on the event loop; None where that takes long, or a thread."""
    known = gate.known()
    if known is None or gate.made.tool in _META_TOOLS or not record_writer.has_room():
        return None
    stored = known[0].catalog
    tool = stored.tools.get(gate.made.tool)
    if tool is None or not schema.is_ready(tool.input_schema):
        return None
    plugin = stored.plugins.get(tool.plugin)
    if plugin is None or not plugin.upstream or upstream_connections.is_left_alone(plugin):
        return None
    try:
        return _judge_tool(gate, *known, is_quick=True)
    except schema.TooComplex:
        return None


def prepare(gate: gates.Gate) -> Answer | gates.Admitted:
    """Answer a meta-tool's call and record it; admit any other, or refuse it and record that.

    Returns the database connection to the pool: what is admitted may wait for long, and run for long.
    """
    try:
        return _judge(gate)
    finally:
        databases.release()


def _judge(gate: gates.Gate) -> Answer | gates.Admitted:
    made, by_dispatch, subagent = gate.made, gate.by_dispatch, gate.subagent
    if made.tool in meta_tools.DEFINITIONS and not by_dispatch:
        return _call_own(made, subagent)
    snapshot, resolved, state = gate.resolve()
    if by_dispatch and made.tool == meta_tools.SEARCH:
        result = dispatch.search_tools(resolved, made.arguments, has_session=made.session is not None)
        return _end(made, result)
    if by_dispatch and made.tool == meta_tools.CALL:
        named = dispatch.parse_call(resolved, made.arguments)
        if isinstance(named, calls.Refusal):
            return call_answers.refuse(made, named)
        # From here on it is a call of the tool that is meant, and recorded as one.
        made.tool, made.arguments = named
        if made.tool in dispatch.LOADING and made.session is not None:
            return _call_own(made, subagent)
        gate.is_dispatched = True
    return _judge_tool(gate, snapshot, resolved, state)


def _call_own(made: recording.Recording, subagent: str | None) -> Answer:
    """Answer the call of a meta-tool that lists or loads."""
    result = own_tools.call(made.agent, made.tool, made.arguments, made.session, made.request_id, subagent)
    return _end(made, result)


def _end(made: recording.Recording, result: calls.MetaAnswer | calls.Refusal) -> Answer:
    """Return and record the answer of a meta-tool."""
    if isinstance(result, calls.Refusal):
        return call_answers.refuse(made, result)
    context_use.add_result(made.agent, result.content)
    if made.tool == meta_tools.SEARCH:
        learning.note_search(made.agent, made.session, made.arguments["query"], result.content)
    return call_answers.answered(made, result.content)


def _judge_tool(
    gate: gates.Gate,
    snapshot: resolution.Snapshot,
    resolved: budgets.Resolution,
    state: Hashable,
    *,
    is_quick: bool = False,
) -> Answer | gates.Admitted:
    made = gate.made
    known = snapshot.catalog.tools.get(made.tool)
    if known is not None:
        made.plugin = known.plugin
        made.arguments = calls.filled(snapshot.catalog, made.tool, made.arguments)
    admitted = gate.admit(resolved, snapshot, is_quick=is_quick)
    if isinstance(admitted, calls.Refusal):
        return call_answers.refuse(made, admitted)
    known = snapshot.catalog.tools[made.tool]
    provider = snapshot.catalog.plugins.get(known.plugin)
    server = provider if provider is not None and provider.upstream else None
    if server is None and not plugins.serves(made.plugin, made.tool):
        if snapshot.catalog.runner(known) == "client" and not plugins.is_loaded(made.plugin):
            return call_answers.refuse(made, calls.run_by_client(made.tool))
        plugins.report_unserved(made.plugin)
        return call_answers.refuse(
            made, call_answers.unavailable(made.tool), "no plugin of this process serves it"
        )
    if server is not None:
        upstream_connections.note_answers_elsewhere(server)
    return gates.Admitted(
        tool=made.tool,
        plugin=made.plugin,
        definition=known,
        server=server,
        arguments=made.arguments,
        context=contract.CallContext(
            agent=made.agent,
            session=made.session or "",
            request_id=made.request_id or "",
            options=admitted.options,
            active_tools=_by_plugin(resolved),
        ),
        until=made.begun + conf.CALL_SECONDS,
        seconds=conf.CALL_SECONDS,
        gate=gate,
        state=state,
        may_ask=server is not None and elicitation.is_granted(resolved, server),
    )


def _by_plugin(resolved: budgets.Resolution) -> Mapping[str, Sequence[str]]:
    tools: dict[str, list[str]] = {}
    for key in resolved.active:
        tools.setdefault(resolved.context.catalog.tools[key].plugin, []).append(key)
    return tools
