"""Loading and unloading, and the statuses of both (docs/semantics.md: Sessions).

The statuses of a load, in the order in which they are tried: ``unknown``, ``not_allowed``, ``denied``,
``unavailable``, ``over_budget``, ``already_loaded``, ``no_session``, ``conflict``, ``loaded``. Of an unload:
``unknown``, ``not_allowed``, ``sticky``, ``no_session``, ``not_loaded``, ``unloaded``. They are decided by the state of
the next request, because the change takes effect then. Rule 8 does not apply to subagents, so nothing that they load
could become active: a load is ``denied``, and there is nothing to unload. The session belongs to the agent.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from toolbelt.core import (
    agents,
    budgets,
    catalog,
    conflicts,
    resolution,
    rules,
    schema,
    secret_texts,
    sessions,
    targets,
)

NEXT_REQUEST = "next_request"
NOT_FOR_SUBAGENTS = "A subagent has the tools of its kind and cannot load others: leave that to the agent."
_CLOSED = {
    "denied": "{name} is not granted to you. An operator can change that.",
    "unavailable": "The tools of {name} are not available now.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a load or unload. ``session`` is the session after it, None if nothing changed."""

    status: str
    toolkit: str
    loaded_toolkits: tuple[str, ...]
    message: str
    session: sessions.Session | None = None
    conflict: conflicts.Conflict | None = None

    def document(self) -> dict[str, Any]:
        """Return the structured content that the model reads."""
        content: dict[str, Any] = {
            "status": self.status,
            "toolkit": self.toolkit,
            "loaded_toolkits": list(self.loaded_toolkits),
            "message": self.message,
        }
        if self.session is not None:
            content["takes_effect"] = NEXT_REQUEST
        if self.conflict is not None:
            content["conflicting_tool"] = self.conflict.tool
            # Their names only: values may be secrets.
            for name, source in (("existing", self.conflict.first), ("candidate", self.conflict.second)):
                content[f"{name}_options"] = dict.fromkeys(source.options or {}, secret_texts.WITHHELD)
        return content


def load(snapshot: resolution.Snapshot, name: str, at: str = "") -> Outcome:
    """Load the toolkit, or the discoverable tool or plugin, called ``name``."""
    upcoming = _upcoming(snapshot)
    resolved = budgets.resolve(upcoming)
    context = resolved.context
    target = targets.find(resolved, name)
    if target is None:
        return _unknown(resolved, name)
    if not target.is_allowed:
        return _answer(context, "not_allowed", name, f"You may not load {name}. {_offer(resolved)}")
    if context.subagent:
        return _answer(context, "denied", name, NOT_FOR_SUBAGENTS)
    closed = targets.closed_state(context, target)
    if closed is not None:
        return _answer(context, closed, name, _CLOSED[closed].format(name=name))
    if not budgets.has_room(resolved, target.tools):
        return _answer(context, "over_budget", name, _over_budget(context.agent.budget, name))
    if targets.is_loaded(context, target) and resolved.deferred.keys().isdisjoint(target.tools):
        return _answer(context, "already_loaded", name, f"{name} is already loaded.")
    if snapshot.session is None:
        return _answer(context, "no_session", name, "Nothing can be loaded without a session.")
    conflict = _conflict(context, target)
    if conflict is not None:
        message = f"{name} cannot be loaded: {conflict.message}"
        return dataclasses.replace(_answer(context, "conflict", name, message), conflict=conflict)
    after = sessions.with_change(snapshot.session, target.kind, target.name, True, snapshot.request_id, at)
    message = f"{name} is loaded: its tools are available from the next request."
    then = budgets.resolve(dataclasses.replace(upcoming, session=after))
    deferred = {then.deferred[key].origin.name: None for key in then.deferred if key not in resolved.deferred}
    if deferred:
        message += f" To make room, the budget defers {budgets.in_short([*deferred])}."
    return _changed(snapshot, after, "loaded", name, message)


def _over_budget(budget: agents.Budget | None, name: str) -> str:
    if budget is not None and budget.on_exceed == "defer":
        return f"{name} does not fit the budget, even with everything else unloaded. An operator can change that."
    return f"Loading {name} would exceed the budget: unload something first, or ask an operator."


def unload(snapshot: resolution.Snapshot, name: str, at: str = "") -> Outcome:
    """Unload what was loaded as ``name``."""
    resolved = budgets.resolve(_upcoming(snapshot))
    context = resolved.context
    target = targets.find(resolved, name, prefer_loaded=True)
    if target is None:
        return _unknown(resolved, name)
    if not target.is_allowed:
        return _answer(context, "not_allowed", name, f"You may not load or unload {name}. {_offer(resolved)}")
    if target.kind == "toolkit" and name in context.initial:
        return _answer(context, "sticky", name, f"{name} is loaded in every session and cannot be unloaded.")
    if snapshot.session is None:
        return _answer(context, "no_session", name, "Nothing can be unloaded without a session.")
    if context.subagent or not targets.is_loaded(context, target):
        return _answer(context, "not_loaded", name, f"{name} is not loaded.")
    after = sessions.with_change(snapshot.session, target.kind, target.name, False, snapshot.request_id, at)
    return _changed(
        snapshot,
        after,
        "unloaded",
        name,
        f"{name} is unloaded: its tools are not available from the next request.",
    )


def list_toolkits(snapshot: resolution.Snapshot) -> dict[str, Any]:
    """Return the allowed toolkits in their order, as of the next request, and what was loaded by name."""
    resolved = budgets.resolve(_upcoming(snapshot))
    context = resolved.context
    by_name = (
        targets.find(resolved, name, prefer_loaded=True)
        for name in sorted(context.tools_by_name | context.plugins_by_name)
    )
    listed = []
    for key in context.agent.allowed_toolkits:
        toolkit = context.catalog.toolkits.get(key)
        if toolkit is not None:
            listed.append(
                {
                    "name": key,
                    "description": toolkit.description,
                    "tool_names": _visible_members(context, toolkit),
                    "loaded": key in context.toolkits,
                    "sticky": key in context.initial,
                    **_deferred_members(resolved, toolkit),
                }
            )
    return {
        "status": "ok",
        "toolkits": listed,
        "loaded_toolkits": list(context.toolkits),
        "loaded_by_name": [target.name for target in by_name if target is not None and target.is_allowed],
    }


def _deferred_members(resolved: budgets.Resolution, toolkit: catalog.Toolkit) -> dict[str, list[str]]:
    """Return the members that the budget deferred as ``deferred``, or nothing if there are none."""
    deferred = [member.tool for member in toolkit.members if member.tool in resolved.deferred]
    return {"deferred": deferred} if deferred else {}


def _visible_members(context: rules.EvaluationContext, toolkit: catalog.Toolkit) -> list[str]:
    """Return the members that the agent may see: those that it is not denied."""
    members = targets.members(context.catalog, toolkit)
    return [
        tool
        for tool in members
        if tool not in context.catalog.non_tools and resolution.decide(context, tool).state != "denied"
    ]


def _upcoming(snapshot: resolution.Snapshot) -> resolution.Snapshot:
    """Return the snapshot of the following request, for which every change applies, including this request's."""
    return dataclasses.replace(snapshot, request_id=None)


def _conflict(context: rules.EvaluationContext, target: targets.Target) -> conflicts.Conflict | None:
    for tool in target.tools:
        if tool not in conflicts.tools_with_options(context.catalog, context.agent):
            continue
        if resolution.decide(context, tool).state in ("denied", "unavailable"):
            continue
        existing = resolution.sources(context, tool)
        if not existing:
            continue
        toolkit = context.catalog.toolkits[target.name] if target.kind == "toolkit" else None
        requested = (
            next((m.options or None for m in toolkit.members if m.tool == tool), None) if toolkit else None
        )
        if not schema.same(requested, existing[0].options):
            candidate = conflicts.Source(kind="loaded", name=target.name, options=requested)
            return conflicts.Conflict(tool=tool, first=existing[0], second=candidate)
    return None


def _answer(context: rules.EvaluationContext, status: str, name: str, message: str) -> Outcome:
    return Outcome(status=status, toolkit=name, loaded_toolkits=context.toolkits, message=message)


def _changed(
    snapshot: resolution.Snapshot, after: sessions.Session, status: str, name: str, message: str
) -> Outcome:
    context = resolution.build_context(dataclasses.replace(snapshot, session=after, request_id=None))
    return dataclasses.replace(_answer(context, status, name, message), session=after)


def _unknown(resolved: budgets.Resolution, name: str) -> Outcome:
    near = targets.nearest(resolved, name)
    hint = f"Did you mean {' or '.join(near)}?" if near else _offer(resolved)
    return _answer(resolved.context, "unknown", name, f"There is nothing named {name!r} to load. {hint}")


def _offer(resolved: budgets.Resolution) -> str:
    allowed = ", ".join(targets.loadable(resolved))
    return f"You may load: {allowed}." if allowed else "Use search_tools to find what you may load."
