"""Loading and unloading, and the statuses of both (docs/semantics.md: Sessions).

The statuses of a load, in the order in which they are tried: ``unknown``, ``not_allowed``, ``denied``,
``unavailable``, ``over_budget``, ``already_loaded``, ``no_session``, ``conflict``, ``loaded``. Of an unload:
``unknown``, ``not_allowed``, ``sticky``, ``no_session``, ``not_loaded``, ``unloaded``. They are decided by the state of
the next request, because the change takes effect then. Rule 8 does not apply to subagents, so nothing that they load
could become active: a load is ``denied``, and there is nothing to unload. The session belongs to the agent.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, conflicts, rules, secret_texts, sessions, texts
from toolbelt.core.rules import budgets, resolution, targets

NEXT_REQUEST = "next_request"
NOT_FOR_SUBAGENTS = "A subagent has the tools of its kind and cannot load others: leave that to the agent."
NO_SESSION = "Nothing can be loaded without a session."
_REFUSALS = {
    "denied": "{name} is not granted to you. An operator can change that.",
    "unavailable": "The tools of {name} are not available now.",
    "already_loaded": "{name} is already loaded.",
    "no_session": NO_SESSION,
}
# Why something else has to be unloaded before a toolkit can be loaded.
_WHY_UNLOAD: Mapping[str | None, str] = {
    "over_budget": "The budget has no room for it beside what is loaded.",
    "conflict": "It passes other options to a tool of something that is loaded.",
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
    match targets.refusal(resolved, target):
        case "not_allowed":
            return _answer(context, "not_allowed", name, f"You may not load {name}. {_offer(resolved)}")
        case "denied" if context.subagent:
            return _answer(context, "denied", name, NOT_FOR_SUBAGENTS)
        case "over_budget":
            return _answer(context, "over_budget", name, _over_budget(upcoming, target))
        case "conflict":
            conflict = targets.conflict(context, target)
            message = f"{name} cannot be loaded: {conflict.message if conflict else ''}"
            return dataclasses.replace(_answer(context, "conflict", name, message), conflict=conflict)
        case str(status):
            return _answer(context, status, name, _REFUSALS[status].format(name=name))
    if snapshot.session is None:
        raise AssertionError("a load without a session is refused")
    after = sessions.with_change(snapshot.session, target.kind, target.name, True, snapshot.request_id, at)
    message = f"{name} is loaded: its tools are available from the next request."
    then = budgets.resolve(dataclasses.replace(upcoming, session=after))
    deferred = {then.deferred[key].origin.name: None for key in then.deferred if key not in resolved.deferred}
    if deferred:
        message += f" To make room, the budget defers {texts.listing([*deferred])}."
    return _changed(snapshot, after, "loaded", name, message)


def _over_budget(upcoming: resolution.Snapshot, target: targets.Target) -> str:
    if targets.refusal(_resolved_with_nothing_loaded(upcoming), target) == "over_budget":
        return (
            f"{target.name} does not fit the budget, even with everything else unloaded."
            " An operator can change that."
        )
    return f"Loading {target.name} would exceed the budget: unload something first, or ask an operator."


def _resolved_with_nothing_loaded(upcoming: resolution.Snapshot) -> budgets.Resolution:
    """Return what the session would have if it unloaded everything."""
    if upcoming.session is None:
        return budgets.resolve(upcoming)
    session = dataclasses.replace(upcoming.session, changes=())
    return budgets.resolve(dataclasses.replace(upcoming, session=session))


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
    """Return the allowed toolkits in their order, as of the next request, and what was loaded by name.

    What cannot be loaded, even with everything else unloaded, is only counted.
    """
    upcoming = _upcoming(snapshot)
    resolved = budgets.resolve(upcoming)
    context = resolved.context
    by_name = sorted(context.tools_by_name | context.plugins_by_name)
    existing = [kit for key in context.agent.allowed_toolkits if (kit := context.catalog.toolkits.get(key))]
    listed = list(_listed(resolved, upcoming, existing))
    answer = {
        "status": "ok",
        "toolkits": listed,
        "loaded_toolkits": list(context.toolkits),
        "loaded_by_name": [name for name in by_name if targets.is_unloadable(resolved, name)],
    }
    if left_out := len(existing) - len(listed):
        is_one = left_out == 1
        why = f"{'It' if is_one else 'They'} cannot be loaded now."
        if context.subagent:
            why = NOT_FOR_SUBAGENTS
        elif not context.has_session:
            why = NO_SESSION
        number = texts.counted(left_out, "more toolkit")
        answer["message"] = f"{number} {'is' if is_one else 'are'} left out. {why}"
    return answer


def _listed(
    resolved: budgets.Resolution, upcoming: resolution.Snapshot, toolkits: list[catalog.Toolkit]
) -> Iterator[dict[str, Any]]:
    """Yield the entry of each toolkit that is loaded, can be loaded, or could be after an unload."""
    context = resolved.context
    nothing_loaded = functools.cache(functools.partial(_resolved_with_nothing_loaded, upcoming))
    for toolkit in toolkits:
        target = targets.of_toolkit(context, toolkit)
        why_not = targets.refusal(resolved, target)
        if why_not in ("over_budget", "conflict"):
            if targets.refusal(nothing_loaded(), target) not in (None, "already_loaded"):
                continue
        elif why_not not in (None, "already_loaded"):
            continue
        yield {
            "name": toolkit.key,
            "description": toolkit.description,
            "tool_names": _visible_members(context, toolkit),
            "loaded": toolkit.key in context.toolkits,
            "sticky": toolkit.key in context.initial,
            **_deferred_members(resolved, toolkit),
            **({"unload_first": _WHY_UNLOAD[why_not]} if why_not in _WHY_UNLOAD else {}),
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
    context = resolved.context
    if context.subagent:
        return NOT_FOR_SUBAGENTS
    if not context.has_session:
        return NO_SESSION
    allowed = ", ".join(targets.loadable(resolved))
    if allowed:
        return f"You may load: {allowed}."
    is_offered = any(targets.name_to_load(resolved, resolved.decision(key)) for key in resolved.offered())
    return "Use search_tools to find what you may load." if is_offered else "There is nothing to load now."
