"""Checks of loadouts and agents against what exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import agents, catalog, conflicts, errors, keys, loadouts
from toolbelt.core.belts import catalog_rules, findings, name_index, vocabulary

Fields = Mapping[str, Any]


def loadout(fields: Fields, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check a loadout: its name, its parent, that no entry is repeated, and that none is both included and disabled."""
    name, parent = fields.get("name", ""), fields.get("parent", "")
    yield from catalog_rules.naming("loadout", name, index, keys.name_problem)
    if parent:
        yield from _parent(name, parent, index)
    for field in ("plugins", "disabled"):
        # Plugins that are not installed here are allowed: a loadout may be shared between installations.
        for position, entry in enumerate(fields.get(field, ())):
            if entry is not None and keys.name_problem(entry):
                message = f"{entry!r} is not a name: only 'discoverable' takes patterns. Name a plugin"
                tail = " or a tool." if field == "disabled" else "."
                yield findings.Finding((field, position), message + tail)
    for position, category in enumerate(fields.get("categories", ())):
        if category is not None and not index.has_category(category):
            yield findings.missing(("categories", position), "category", category, index.categories())
    for position, pattern in enumerate(fields.get("discoverable", ())):
        if pattern is not None and not pattern.strip():
            yield findings.Finding(("discoverable", position), loadouts.BLANK_PATTERN)
    for field in ("plugins", "categories", "discoverable", "disabled"):
        yield from catalog_rules.repeated(field, fields.get(field, ()), keys.fold)
    plugins = {keys.fold(plugin) for plugin in fields.get("plugins", ()) if plugin is not None}
    for position, entry in enumerate(fields.get("disabled", ())):
        if entry is not None and keys.fold(entry) in plugins:
            message = (
                f"{entry!r} is in both 'plugins' and 'disabled': disabled wins. Remove it from one of them."
            )
            yield findings.Finding(("disabled", position), message)


def patterns(fields: Fields) -> Iterator[findings.Finding]:
    """Check a loadout's patterns, where it is saved: a scenario may state one that matches nothing."""
    for position, pattern in enumerate(fields.get("discoverable", ())):
        if pattern and pattern.strip() and (problem := loadouts.pattern_problem(pattern)):
            yield findings.Finding(("discoverable", position), problem)


def _parent(name: str, parent: str, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    folded = keys.fold(name)
    if keys.fold(parent) != folded and not index.has_loadout(parent):
        yield findings.missing(("parent",), "loadout", parent, loadouts.all_names(index.stored))
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


def agent(fields: Fields, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check an agent: its key, and that everything it names exists, is named once, and fits the field."""
    yield from catalog_rules.naming("agent", fields.get("key", ""), index, keys.name_problem)
    if (name := fields.get("loadout", "")) and not index.has_loadout(name):
        yield findings.missing(("loadout",), "loadout", name, loadouts.all_names(index.stored))
    always = [use and use["tool"] for use in fields.get("tools", ())]
    yield from catalog_rules.unknown("tools", always, "tool", index.stored.tools)
    yield from catalog_rules.repeated("tools", always)
    yield from _tools_config(fields.get("tools_config", {}), index)
    yield from _ends(fields)
    yield from _toolkits(fields, index)
    session_loadouts = fields.get("session_loadouts", ())
    for position, name in enumerate(session_loadouts):
        if name is not None and not index.has_loadout(name):
            yield findings.missing(
                ("session_loadouts", position), "loadout", name, loadouts.all_names(index.stored)
            )
    yield from catalog_rules.repeated("session_loadouts", session_loadouts, keys.fold)
    yield from catalog_rules.repeated("subagent_kinds", fields.get("subagent_kinds", ()))


def _tools_config(tools_config: Fields, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    toolkits, tools = index.stored.toolkits, index.stored.tools
    unknown_keys = [key for key in tools_config if key not in toolkits and key not in tools]
    among = [*toolkits, *tools] if unknown_keys else []
    for key in unknown_keys:
        yield findings.missing(("tools_config", key), "tool or toolkit", key, among)


def _ends(fields: Fields) -> Iterator[findings.Finding]:
    flat = fields.get("tools_config", {})
    for key, end in fields.get("ends", {}).items():
        if end is None:
            continue
        if flat.get(key) is None:
            message = (
                f"{key!r} is not set in 'tools_config', so it cannot end: set it there, or remove the end."
            )
            yield findings.Finding(("ends", key), message)
        elif end.get("then") is flat[key]:
            message = f"{key!r} would not change when it ends: remove the end, or change 'then'."
            yield findings.Finding(("ends", key, "then"), message)


def _toolkits(fields: Fields, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    toolkits = index.stored.toolkits
    allowed, initial = fields.get("allowed_toolkits", ()), fields.get("initial_toolkits", ())
    for field, names in (("allowed_toolkits", allowed), ("initial_toolkits", initial)):
        yield from catalog_rules.unknown(field, names, "toolkit", toolkits)
        yield from catalog_rules.repeated(field, names)
    for position, name in enumerate(initial):
        if name in toolkits and name not in allowed:
            message = f"{name!r} is not among the allowed toolkits: allow it as well, or remove it here."
            yield findings.Finding(("initial_toolkits", position), message)


def conflicting(written: Fields, agent: agents.Agent, stored: catalog.Catalog) -> Iterator[errors.Problem]:
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
