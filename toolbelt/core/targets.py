"""Targets: what a name that an agent loads refers to, and which names it may load (docs/semantics.md: Sessions).

``load_tools`` takes the name of a toolkit, or of a discoverable plugin or tool. Hints never reveal what an agent may
not load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import budgets, catalog, errors, loadouts, resolution, rules, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a name: a toolkit, tool or plugin, the tools it adds, and whether the agent may load it."""

    kind: sessions.Kind
    name: str
    tools: tuple[str, ...]
    is_allowed: bool


def find(resolved: budgets.Resolution, name: str, *, prefer_loaded: bool = False) -> Target | None:
    """Return the target of ``name`` for this agent, or None.

    If a toolkit, a tool and a plugin share the name, the first that the agent may load is returned, else the first;
    with ``prefer_loaded``, one that the session has loaded is preferred. Tools and plugins may be loaded if a pattern
    matches them, or if the budget deferred them: those are discoverable as well, and loading them has its own status.
    """
    context = resolved.context
    stored = context.catalog

    def is_offered(tool: str) -> bool:
        if tool in stored.non_tools:
            return False
        return tool in resolved.deferred or bool(rules.pattern_for(context, stored.tools[tool]))

    targets: list[Target] = []
    toolkit = stored.toolkits.get(name)
    if toolkit is not None:
        allowed = name in context.agent.allowed_toolkits
        targets.append(Target(kind="toolkit", name=name, tools=members(stored, toolkit), is_allowed=allowed))
    if name in stored.tools and name not in stored.non_tools:
        targets.append(Target(kind="tool", name=name, tools=(name,), is_allowed=is_offered(name)))
    if name in stored.plugins:
        tools = tuple(tool for tool in stored.tools_of_plugin.get(name, ()) if is_offered(tool))
        targets.append(Target(kind="plugin", name=name, tools=tools, is_allowed=bool(tools)))
    ranked = sorted(
        targets, key=lambda target: (not target.is_allowed, prefer_loaded and not is_loaded(context, target))
    )
    return ranked[0] if ranked else None


def members(stored: catalog.Catalog, toolkit: catalog.Toolkit) -> tuple[str, ...]:
    """Return the toolkit's members that exist, in order."""
    return tuple(member.tool for member in toolkit.members if member.tool in stored.tools)


def is_loaded(context: rules.EvaluationContext, target: Target) -> bool:
    """Return whether the session has loaded the target."""
    match target.kind:
        case "toolkit":
            return target.name in context.toolkits
        case "tool":
            return target.name in context.tools_by_name
        case "plugin":
            return target.name in context.plugins_by_name


def closed_state(context: rules.EvaluationContext, target: Target) -> Literal["denied", "unavailable"] | None:
    """Return why loading the target would have no effect (all of its tools are denied or unavailable), or None."""
    states = {resolution.decide(context, tool).state for tool in target.tools}
    if states == {"unavailable"} and not _is_closed(context, target):
        return "unavailable"
    return "denied" if _is_closed(context, target) or states <= {"denied", "unavailable"} else None


def _is_closed(context: rules.EvaluationContext, target: Target) -> bool:
    """Return whether the target itself is blocked or its switch is off, whatever its tools are."""
    stored, name = context.catalog, target.name
    match target.kind:
        case "toolkit":
            return stored.toolkits[name].blocked or context.agent.switches.get(name) is False
        case "plugin":
            return stored.plugins[name].blocked
        case "tool":
            return stored.tools[name].blocked


def name_to_load(decision: resolution.Decision) -> str:
    """Return the name to load for a discoverable tool: its toolkit's, or its own."""
    return decision.origin.name if decision.code == "loadable" else decision.tool


def nearest(resolved: budgets.Resolution, name: str) -> tuple[str, ...]:
    """Return the names most similar to ``name`` that this agent may load."""
    return tuple(near for near in errors.nearest(name, _names(resolved)) if may_load(resolved, near))


def loadable(resolved: budgets.Resolution) -> Iterator[str]:
    """Yield the toolkits that this agent may load or has loaded, in the allowed order, without initial ones."""
    for key in resolved.context.agent.allowed_toolkits:
        if key not in resolved.context.initial and may_load(resolved, key):
            yield key


def may_load(resolved: budgets.Resolution, name: str) -> bool:
    """Return whether loading ``name`` could add tools: it is allowed and not closed, and the budget has room."""
    target = find(resolved, name)
    return (
        target is not None
        and target.is_allowed
        and closed_state(resolved.context, target) is None
        and budgets.has_room(resolved, target.tools)
    )


def _names(resolved: budgets.Resolution) -> Iterator[str]:
    context = resolved.context
    yield from context.agent.allowed_toolkits
    if context.loadout is not None and context.loadout.patterns:
        for tool in loadouts.tools_discoverable(context.catalog, context.loadout_name):
            if tool in context.catalog.non_tools:
                continue
            if resolution.decide(context, tool).state != "denied":
                yield tool
                if plugin := context.catalog.tools[tool].plugin:
                    yield plugin
