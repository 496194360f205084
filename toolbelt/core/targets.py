"""What does a name mean that an agent asks to load, and which names may it ask for? (semantics: Sessions)

``load_tools`` takes a toolkit's name, or that of a discoverable plugin or tool. Nothing that an agent may not load is
ever given away in a hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import budgets, catalog, errors, loadouts, questions, resolution, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a name to load means: a toolkit, tool or plugin, the tools it brings, whether it may be asked for."""

    kind: sessions.Kind
    name: str
    tools: tuple[str, ...]
    is_allowed: bool


def find(resolved: budgets.Resolution, name: str, *, held: bool = False) -> Target | None:
    """Say what ``name`` means to this agent; None where nothing is called so.

    A toolkit, a tool and a plugin may share a name: the first of them that the agent may load is meant, else the
    first that there is; with ``held``, of those that it may load rather one that its session has. What may be
    asked for by name is what a pattern matches, and what the budget deferred: that is discoverable too, and
    asking for it has its own answer.
    """
    standing = resolved.standing
    stored = standing.catalog

    def is_offered(tool: str) -> bool:
        return tool in resolved.deferred or bool(questions.pattern_for(standing, stored.tools[tool]))

    found: list[Target] = []
    toolkit = stored.toolkits.get(name)
    if toolkit is not None:
        allowed = name in standing.agent.allowed_toolkits
        found.append(Target(kind="toolkit", name=name, tools=members(stored, toolkit), is_allowed=allowed))
    if name in stored.tools:
        found.append(Target(kind="tool", name=name, tools=(name,), is_allowed=is_offered(name)))
    if name in stored.plugins:
        tools = tuple(tool for tool in stored.tools_of_plugin.get(name, ()) if is_offered(tool))
        found.append(Target(kind="plugin", name=name, tools=tools, is_allowed=bool(tools)))
    ranked = sorted(found, key=lambda one: (not one.is_allowed, held and not has(standing, one)))
    return ranked[0] if ranked else None


def members(stored: catalog.Catalog, toolkit: catalog.Toolkit) -> tuple[str, ...]:
    """Name the toolkit's members that exist, in its order."""
    return tuple(member.tool for member in toolkit.members if member.tool in stored.tools)


def has(standing: questions.Standing, target: Target) -> bool:
    """Say whether the session has the target already."""
    match target.kind:
        case "toolkit":
            return target.name in standing.toolkits
        case "tool":
            return target.name in standing.tools_by_name
        case "plugin":
            return target.name in standing.plugins_by_name


def closed(standing: questions.Standing, target: Target) -> Literal["denied", "unavailable"] | None:
    """Say why loading the target could bring nothing, if that is so: denied, or unavailable throughout."""
    states = {resolution.decide(standing, tool).state for tool in target.tools}
    if states == {"unavailable"} and not _is_shut(standing, target):
        return "unavailable"
    return "denied" if _is_shut(standing, target) or states <= {"denied", "unavailable"} else None


def _is_shut(standing: questions.Standing, target: Target) -> bool:
    """Say whether the very thing asked for is blocked, or its switch is off, whatever its tools are."""
    stored, name = standing.catalog, target.name
    match target.kind:
        case "toolkit":
            return stored.toolkits[name].blocked or standing.agent.switches.get(name) is False
        case "plugin":
            return stored.plugins[name].blocked
        case "tool":
            return stored.tools[name].blocked


def name_to_load(decision: resolution.Decision) -> str:
    """Give the name that makes a discoverable tool active when it is loaded: its toolkit's, or its own."""
    return decision.origin.name if decision.code == "loadable" else decision.tool


def nearest(resolved: budgets.Resolution, name: str) -> tuple[str, ...]:
    """Give the names most like ``name`` among those that this agent may load."""
    return errors.nearest(name, _names(resolved))


def toolkits(resolved: budgets.Resolution) -> Iterator[str]:
    """Name the toolkits that this agent may load, in the allowed order."""
    for key in resolved.standing.agent.allowed_toolkits:
        target = find(resolved, key)
        if target is not None and closed(resolved.standing, target) is None:
            yield key


def _names(resolved: budgets.Resolution) -> Iterator[str]:
    standing = resolved.standing
    yield from toolkits(resolved)
    if standing.loadout is not None and standing.loadout.patterns:
        for tool in loadouts.tools_discoverable(standing.catalog, standing.loadout_name):
            if resolution.decide(standing, tool).state != "denied":
                yield tool
                if plugin := standing.catalog.tools[tool].plugin:
                    yield plugin
