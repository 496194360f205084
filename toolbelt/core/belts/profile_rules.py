"""Checks of loadouts and agents against what exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import agents, catalog, conflicts, errors, keys, loadouts
from toolbelt.core.belts import findings, name_index, vocabulary


def loadout(entry: vocabulary.Loadout, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check a loadout: its parent, its patterns, and that no entry is both included and disabled."""
    if entry.parent:
        yield from _parent(entry.name or "", entry.parent, index)
    for field, names in (("plugins", entry.plugins), ("disabled", entry.disabled)):
        # Plugins that are not installed here are allowed: a loadout may be shared between installations.
        for position, name in enumerate(names or ()):
            if name is not None and keys.name_problem(name):
                message = f"{name!r} is not a name: only 'discoverable' takes patterns. Name a plugin"
                tail = " or a tool." if field == "disabled" else "."
                yield findings.Finding((field, position), message + tail)
    for position, pattern in enumerate(entry.discoverable or ()):
        if pattern is not None and not pattern.strip():
            yield findings.Finding(("discoverable", position), loadouts.BLANK_PATTERN)
    plugins = {keys.fold(plugin) for plugin in entry.plugins or () if plugin is not None}
    for position, name in enumerate(entry.disabled or ()):
        if name is not None and keys.fold(name) in plugins:
            message = (
                f"{name!r} is in both 'plugins' and 'disabled': disabled wins. Remove it from one of them."
            )
            yield findings.Finding(("disabled", position), message)


def patterns(entry: vocabulary.Loadout) -> Iterator[findings.Finding]:
    """Check a loadout's patterns, where it is saved: a scenario may state one that matches nothing."""
    for position, pattern in enumerate(entry.discoverable or ()):
        if pattern and pattern.strip() and (problem := loadouts.pattern_problem(pattern)):
            yield findings.Finding(("discoverable", position), problem)


def _parent(name: str, parent: str, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    folded = keys.fold(name)
    if keys.fold(parent) != folded and not index.has("loadout", parent):
        yield findings.missing(("parent",), "loadout", parent, loadouts.all_names(index.stored))
        return
    if not name:
        return
    # The entry may be newer than the stored one, so its parent is taken from the entry.
    path = [name, parent]
    for link in loadouts.chain(index.stored.loadouts, parent):
        if keys.fold(path[-1]) == folded:
            break
        path.append(link.parent)
    if keys.fold(path[-1]) == folded:
        message = (
            f"A loadout cannot be its own ancestor: {' → '.join(path)}. Give one of them another parent."
        )
        yield findings.Finding(("parent",), message)


def agent(entry: vocabulary.Agent, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check an agent: what expires, and that it may load its initial toolkits."""
    yield from _ends(entry)
    toolkits, allowed = index.stored.toolkits, entry.allowed_toolkits or ()
    for position, name in enumerate(entry.initial_toolkits or ()):
        if name in toolkits and name not in allowed:
            message = f"{name!r} is not among the allowed toolkits: allow it as well, or remove it here."
            yield findings.Finding(("initial_toolkits", position), message)


def _ends(entry: vocabulary.Agent) -> Iterator[findings.Finding]:
    flat = entry.tools_config or {}
    for key, end in (entry.ends or {}).items():
        if end is None:
            continue
        if flat.get(key) is None:
            message = (
                f"{key!r} is not set in 'tools_config', so it cannot end: set it there, or remove the end."
            )
            yield findings.Finding(("ends", key), message)
        elif end.then is flat[key]:
            message = f"{key!r} would not change when it ends: remove the end, or change 'then'."
            yield findings.Finding(("ends", key, "then"), message)


def conflicting(
    written: Mapping[str, Any], agent: agents.Agent, stored: catalog.Catalog
) -> Iterator[errors.Problem]:
    """Yield problems where two sources give a tool different options, for an agent that is otherwise valid.

    A conflict is reported at the second source, in the agent's entry (``written``) or in the sub-app.
    """
    for conflict in conflicts.of_agent(stored, agent):
        second = conflict.second
        kind: vocabulary.KindName = "agent"
        owner = agent.key
        path: findings.Path = ("tools_config", second.name)
        match second.kind:
            case "sub-app":
                kind, owner = "sub_app", second.name
                path = _item("tool_names", stored.sub_apps[owner].tool_names, conflict.tool)
            case "initial":
                path = _item("initial_toolkits", written["initial_toolkits"], second.name)
        message = f"{conflict.message} Make the options equal, or let only one of them bring the tool."
        where = findings.address(vocabulary.KINDS[kind].section, owner, 0)
        yield from findings.problems(where, None, [findings.Finding(path, message)], findings.Hints())


def _item(field: str, names: Sequence[str], name: str) -> findings.Path:
    return field, names.index(name)
