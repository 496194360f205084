"""Targets: what a name that an agent loads refers to, and whether a load of it would succeed (docs/semantics.md:
Sessions).

``load_tools`` takes the name of a toolkit, or of a discoverable plugin or tool. :func:`refusal` is the one answer to
"would this load succeed": for the load itself, the meta-tools of a surface, lists, search results and hints. Hints
never reveal what an agent may not load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import catalog, conflicts, errors, loadouts, rules, schema, sessions
from toolbelt.core.rules import budgets, resolution

Refusal = Literal[
    "not_allowed", "denied", "unavailable", "over_budget", "already_loaded", "no_session", "conflict"
]


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
    What was loaded because the budget had deferred it stays loadable, so that it can be unloaded.
    """
    context = resolved.context
    stored = context.catalog
    budget = context.agent.budget
    defers = budget is not None and budget.defers

    def is_offered(tool: str) -> bool:
        if tool in stored.non_tools:
            return False
        if tool in resolved.removed or rules.pattern_for(context, stored.tools[tool]):
            return True
        is_loaded = tool in context.tools_by_name or stored.tools[tool].plugin in context.plugins_by_name
        return defers and is_loaded and tool in resolved.tools

    targets: list[Target] = []
    toolkit = stored.toolkits.get(name)
    if toolkit is not None:
        targets.append(of_toolkit(context, toolkit))
    if name in stored.tools and name not in stored.non_tools:
        targets.append(Target(kind="tool", name=name, tools=(name,), is_allowed=is_offered(name)))
    if name in stored.plugins:
        tools = tuple(tool for tool in stored.tools_of_plugin.get(name, ()) if is_offered(tool))
        targets.append(Target(kind="plugin", name=name, tools=tools, is_allowed=bool(tools)))
    ranked = sorted(
        targets, key=lambda target: (not target.is_allowed, prefer_loaded and not is_loaded(context, target))
    )
    return ranked[0] if ranked else None


def of_toolkit(context: rules.EvaluationContext, toolkit: catalog.Toolkit) -> Target:
    """Return the target of a toolkit's name."""
    return Target(
        kind="toolkit",
        name=toolkit.key,
        tools=members(context.catalog, toolkit),
        is_allowed=toolkit.key in context.agent.allowed_toolkits,
    )


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
    if _is_closed(context, target):
        return "denied"
    tools = context.not_denied(frozenset(target.tools))
    if tools - rules.closed(context.catalog, tools):
        return None
    states = {resolution.decide(context, tool).state for tool in target.tools}
    return "unavailable" if states == {"unavailable"} else "denied"


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


def refusal(resolved: budgets.Resolution, target: Target) -> Refusal | None:
    """Return the status with which a load of the target is answered if it changes nothing; None if it succeeds."""
    context = resolved.context
    if not target.is_allowed:
        return "not_allowed"
    if context.subagent:
        return "denied"
    if closed := closed_state(context, target):
        return closed
    if not budgets.has_room(resolved, target.tools):
        return "over_budget"
    if is_loaded(context, target) and resolved.removed.keys().isdisjoint(target.tools):
        return "already_loaded"
    if not context.has_session:
        return "no_session"
    return "conflict" if conflict(context, target) else None


def conflict(context: rules.EvaluationContext, target: Target) -> conflicts.Conflict | None:
    """Return the first conflict that a load of the target would cause, or None."""
    with_options = conflicts.tools_with_options(context.catalog, context.agent)
    for tool in target.tools if with_options else ():
        if tool not in with_options:
            continue
        if context.denies(tool) or rules.closing(context.catalog, tool) is not None:
            continue
        existing = resolution.sources(context, tool)
        if not existing:
            continue
        toolkit = context.catalog.toolkits[target.name] if target.kind == "toolkit" else None
        requested = conflicts.options_of(toolkit, tool) if toolkit else None
        if not schema.same(requested, existing[0].options):
            candidate = conflicts.Source(kind="loaded", name=target.name, options=requested)
            return conflicts.Conflict(tool=tool, first=existing[0], second=candidate)
    return None


def name_to_load(resolved: budgets.Resolution, decision: resolution.Decision) -> str:
    """Return a name whose load would make a discoverable tool active: a toolkit's, or its own; empty if there is
    none.
    """
    context = resolved.context
    if context.subagent or not context.has_session:
        return ""
    for toolkit in context.catalog.toolkits_of.get(decision.tool, ()):
        if (
            decision.code == "loadable"
            and toolkit.key in context.loadable
            and refusal(resolved, of_toolkit(context, toolkit)) is None
        ):
            return toolkit.key
    return decision.tool if would_load(resolved, decision.tool) else ""


def is_anything_to_change(resolved: budgets.Resolution) -> bool:
    """Return whether any load or unload would succeed: only then are there meta-tools."""
    context = resolved.context
    if context.subagent or not context.has_session:
        return False
    return (
        any(key not in context.initial for key in context.toolkits)
        or any(is_unloadable(resolved, name) for name in context.tools_by_name | context.plugins_by_name)
        or any(would_load(resolved, key) for key in context.agent.allowed_toolkits)
        # Of other tools on request, only a load by their own name is left to try.
        or any(would_load(resolved, tool) for tool in resolved.offered())
    )


def is_unloadable(resolved: budgets.Resolution, name: str) -> bool:
    """Return whether what was loaded as ``name`` can be unloaded. A load by name that no pattern covers any more
    counts for nothing.
    """
    target = find(resolved, name, prefer_loaded=True)
    return target is not None and target.is_allowed and is_loaded(resolved.context, target)


def nearest(resolved: budgets.Resolution, name: str) -> tuple[str, ...]:
    """Return the names most similar to ``name`` that this agent may load."""
    return tuple(near for near in errors.nearest(name, _names(resolved)) if would_load(resolved, near))


def loadable(resolved: budgets.Resolution) -> Iterator[str]:
    """Yield the toolkits that the session can load or has loaded, in the allowed order, without initial ones."""
    context = resolved.context
    for key in context.agent.allowed_toolkits if context.has_session else ():
        toolkit = context.catalog.toolkits.get(key)
        if toolkit is None or key in context.initial:
            continue
        if refusal(resolved, of_toolkit(context, toolkit)) in (None, "already_loaded"):
            yield key


def would_load(resolved: budgets.Resolution, name: str) -> bool:
    """Return whether a load of ``name`` would succeed."""
    target = find(resolved, name)
    return target is not None and refusal(resolved, target) is None


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
