"""May this be loaded now, with which status? (semantics: Sessions, on statuses)

The statuses of a load, in the order in which they are tried: ``unknown``, ``not_allowed``, ``denied``,
``unavailable``, ``over_budget``, ``already_loaded``, ``no_session``, ``conflict``, ``loaded``. Of an unload:
``unknown``, ``not_allowed``, ``sticky``, ``no_session``, ``not_loaded``, ``unloaded``. All are judged by what the next
request will have, since that is what the change would count for. A subagent skips question 8, so nothing that it loads
could become active: a load is ``denied``, and of an unload there is nothing to take away. The session is its agent's.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from toolbelt.core import (
    budgets,
    catalog,
    conflicts,
    questions,
    resolution,
    schema,
    sessions,
    targets,
)

NEXT_REQUEST = "next_request"
NOT_FOR_SUBAGENTS = "A subagent has what its kind brings in, and loads nothing: leave that to the agent."
BROUGHT = frozenset({"initial", "loaded"})
_CLOSED = {
    "denied": "{name} is not granted to you. An operator can change that.",
    "unavailable": "The tools of {name} are not available at present.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to a load or unload. ``session`` is the session after it, None where nothing changed."""

    status: str
    toolkit: str
    loaded_toolkits: tuple[str, ...]
    message: str
    session: sessions.Session | None = None
    conflict: conflicts.Conflict | None = None

    def document(self) -> dict[str, Any]:
        """Give the structured content that the model reads."""
        found: dict[str, Any] = {
            "status": self.status,
            "toolkit": self.toolkit,
            "loaded_toolkits": list(self.loaded_toolkits),
            "message": self.message,
        }
        if self.session is not None:
            found["takes_effect"] = NEXT_REQUEST
        if self.conflict is not None:
            found["conflicting_tool"] = self.conflict.tool
            found["existing_options"] = self.conflict.first.options
            found["candidate_options"] = self.conflict.second.options
        return found


def load(snapshot: resolution.Snapshot, name: str, at: str = "") -> Outcome:
    """Ask to load the toolkit, or the discoverable tool or plugin, called ``name``."""
    upcoming = _upcoming(snapshot)
    resolved = budgets.resolve(upcoming)
    standing = resolved.standing
    target = targets.find(resolved, name)
    if target is None:
        return _unknown(resolved, name)
    if not target.is_allowed:
        return _answer(standing, "not_allowed", name, f"You may not load {name}. {_offer(resolved)}")
    if standing.subagent:
        return _answer(standing, "denied", name, NOT_FOR_SUBAGENTS)
    closed = targets.closed(standing, target)
    if closed is not None:
        return _answer(standing, closed, name, _CLOSED[closed].format(name=name))
    if _is_over_budget(resolved, upcoming, target):
        message = f"Loading {name} would pass the budget: unload something first, or ask an operator."
        return _answer(standing, "over_budget", name, message)
    if targets.has(standing, target):
        return _answer(standing, "already_loaded", name, f"{name} is loaded already.")
    if snapshot.session is None:
        return _answer(standing, "no_session", name, "Nothing can be loaded without a session.")
    conflict = _conflict(standing, target)
    if conflict is not None:
        message = f"{name} cannot be loaded: {conflict.message}"
        return dataclasses.replace(_answer(standing, "conflict", name, message), conflict=conflict)
    after = sessions.changed(snapshot.session, target.kind, target.name, True, snapshot.request_id, at)
    return _changed(
        snapshot, after, "loaded", name, f"{name} is loaded: its tools are there from the next request on."
    )


def unload(snapshot: resolution.Snapshot, name: str, at: str = "") -> Outcome:
    """Ask to unload what was loaded under ``name``."""
    resolved = budgets.resolve(_upcoming(snapshot))
    standing = resolved.standing
    target = targets.find(resolved, name, held=True)
    if target is None:
        return _unknown(resolved, name)
    if not target.is_allowed:
        return _answer(
            standing, "not_allowed", name, f"You may not load or unload {name}. {_offer(resolved)}"
        )
    if target.kind == "toolkit" and name in standing.initial:
        return _answer(standing, "sticky", name, f"{name} is loaded in every session and stays.")
    if snapshot.session is None:
        return _answer(standing, "no_session", name, "Nothing can be unloaded without a session.")
    if standing.subagent or not targets.has(standing, target):
        return _answer(standing, "not_loaded", name, f"{name} is not loaded.")
    after = sessions.changed(snapshot.session, target.kind, target.name, False, snapshot.request_id, at)
    return _changed(
        snapshot, after, "unloaded", name, f"{name} is unloaded: its tools go with the next request."
    )


def listing(snapshot: resolution.Snapshot) -> dict[str, Any]:
    """List the allowed toolkits in their order, as the next request will find them, and what was loaded by name."""
    resolved = budgets.resolve(_upcoming(snapshot))
    standing = resolved.standing
    by_name = (
        targets.find(resolved, name, held=True)
        for name in sorted(standing.tools_by_name | standing.plugins_by_name)
    )
    found = []
    for key in standing.agent.allowed_toolkits:
        toolkit = standing.catalog.toolkits.get(key)
        if toolkit is not None:
            found.append(
                {
                    "name": key,
                    "description": toolkit.description,
                    "tool_names": _told(standing, toolkit),
                    "loaded": key in standing.toolkits,
                    "sticky": key in standing.initial,
                }
            )
    return {
        "status": "ok",
        "toolkits": found,
        "loaded_toolkits": list(standing.toolkits),
        "loaded_by_name": [target.name for target in by_name if target is not None and target.is_allowed],
    }


def _told(standing: questions.Standing, toolkit: catalog.Toolkit) -> list[str]:
    """Name the members that the agent may be told of: not those that it is denied."""
    members = targets.members(standing.catalog, toolkit)
    return [tool for tool in members if resolution.decide(standing, tool).state != "denied"]


def _upcoming(snapshot: resolution.Snapshot) -> resolution.Snapshot:
    """Give the snapshot of a request that follows: every change counts, the one of this request too."""
    return dataclasses.replace(snapshot, request_id=None)


def _with(snapshot: resolution.Snapshot, target: targets.Target) -> resolution.Snapshot:
    """Give the snapshot as it would be with the target loaded."""
    session = snapshot.session or sessions.Session(key="")
    return dataclasses.replace(
        snapshot, session=sessions.changed(session, target.kind, target.name, True, None)
    )


def _is_over_budget(
    before: budgets.Resolution, upcoming: resolution.Snapshot, target: targets.Target
) -> bool:
    """Say whether the budget refuses the load, or would at once defer all that it could bring (or has already)."""
    budget = upcoming.agent.budget
    if budget is None or budget.on_exceed == "warn":
        return False
    after = budgets.resolve(_with(upcoming, target))
    gained = after.active.keys() - before.active.keys()
    if budget.on_exceed == "refuse":
        return after.spent.is_passed and bool(gained)
    if gained.intersection(target.tools) or not any(tool in after.deferred for tool in target.tools):
        return False
    # A toolkit goes whole: while the session brings one of its tools, it was another one that went with the rest.
    brought = any(tool in after.active and after.active[tool].code in BROUGHT for tool in target.tools)
    return not (brought and targets.has(before.standing, target))


def _conflict(standing: questions.Standing, target: targets.Target) -> conflicts.Conflict | None:
    for tool in target.tools:
        if tool not in conflicts.concerned(standing.catalog, standing.agent):
            continue
        if resolution.decide(standing, tool).state in ("denied", "unavailable"):
            continue
        existing = resolution.sources(standing, tool)
        if not existing:
            continue
        toolkit = standing.catalog.toolkits[target.name] if target.kind == "toolkit" else None
        handed = (
            next((m.options or None for m in toolkit.members if m.tool == tool), None) if toolkit else None
        )
        if not schema.same(handed, existing[0].options):
            candidate = conflicts.Source(kind="loaded", name=target.name, options=handed)
            return conflicts.Conflict(tool=tool, first=existing[0], second=candidate)
    return None


def _answer(standing: questions.Standing, status: str, name: str, message: str) -> Outcome:
    return Outcome(status=status, toolkit=name, loaded_toolkits=standing.toolkits, message=message)


def _changed(
    snapshot: resolution.Snapshot, after: sessions.Session, status: str, name: str, message: str
) -> Outcome:
    standing = resolution.stand(dataclasses.replace(snapshot, session=after, request_id=None))
    return dataclasses.replace(_answer(standing, status, name, message), session=after)


def _unknown(resolved: budgets.Resolution, name: str) -> Outcome:
    near = targets.nearest(resolved, name)
    hint = f"Did you mean {' or '.join(near)}?" if near else _offer(resolved)
    return _answer(resolved.standing, "unknown", name, f"There is nothing named {name!r} to load. {hint}")


def _offer(resolved: budgets.Resolution) -> str:
    allowed = ", ".join(targets.toolkits(resolved))
    return f"You may load: {allowed}." if allowed else "Use search_tools to find what you may load."
