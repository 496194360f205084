"""What may be called through ``call_tool``, and what does ``search_tools`` say beside it? (wire.md: MCP, dispatch)

What is active or discoverable for the agent: naming a tool loads it for that one call, and for nothing else. So it is
handed the options that loading it would have handed it. Every denial holds as it does everywhere.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from toolbelt.core import (
    budgets,
    calls,
    meta_tools,
    questions,
    resolution,
    schema,
    sessions,
    surface,
    targets,
)


def admit(
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    tool: str,
    arguments: Any,
    *,
    hide_denied: bool = False,
) -> calls.Admission | calls.Refusal:
    """Admit or refuse the call of a tool that was named to ``call_tool``."""
    stored = resolved.standing.catalog
    if tool not in stored.tools or (decision := resolved.decision(tool)).state != "discoverable":
        return calls.admit(resolved, tool, arguments, hide_denied=hide_denied)
    violations = schema.violations(stored.tools[tool].input_schema, calls.filled(stored, tool, arguments))
    if violations:
        return calls.invalid(tool, violations)
    standing = resolved.standing if decision.code == "budget" else _loaded(snapshot, decision)
    return calls.Admission(tool=tool, options=resolution.options(standing, tool)[0])


def named(resolved: budgets.Resolution, arguments: Any) -> tuple[str, Any] | calls.Refusal:
    """Read the arguments of ``call_tool``: the tool that is meant, and the arguments for it."""
    if refusal := _refusal(resolved, meta_tools.CALL, arguments):
        return refusal
    return arguments["tool"], arguments.get("arguments", {})


def search(resolved: budgets.Resolution, arguments: Any) -> calls.MetaAnswer | calls.Refusal:
    """Answer ``search_tools``: what can be called through ``call_tool``, with the schemas."""
    if refusal := _refusal(resolved, meta_tools.SEARCH, arguments):
        return refusal
    results = [{name: one[name] for name in one if name != "load"} for one in calls.hits(resolved, arguments)]
    message = (
        "Call a result with call_tool: its name as 'tool', and 'arguments' that fit its input_schema."
        if results
        else "Nothing else that you may call matches: try other words."
    )
    return calls.MetaAnswer(content={"status": "ok", "results": results, "message": message})


def _refusal(resolved: budgets.Resolution, tool: str, arguments: Any) -> calls.Refusal | None:
    if not surface.may_load(resolved):
        return calls.unknown(tool)
    violations = schema.violations(meta_tools.SCHEMAS[tool], arguments)
    return calls.invalid(tool, violations) if violations else None


def _loaded(snapshot: resolution.Snapshot, decision: resolution.Decision) -> questions.Standing:
    """Give how things would stand with the tool loaded."""
    kind: sessions.Kind = "toolkit" if decision.code == "loadable" else "tool"
    session = snapshot.session or sessions.Session(key="")
    after = sessions.changed(session, kind, targets.name_to_load(decision), True, None)
    return resolution.stand(dataclasses.replace(snapshot, session=after))
