"""Is this loadout or agent sound, beside what is known? (semantics: Loadouts, tools_config, Sessions)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import agents, catalog, conflicts, errors, keys, loadouts
from toolbelt.core.belts import catalog_rules, findings, known, vocabulary

Given = Mapping[str, Any]


def loadout(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a loadout: its name, its parent, and that no entry stands twice or is brought in and disabled at once."""
    name, parent = given.get("name", ""), given.get("parent", "")
    yield from catalog_rules.naming("loadout", name, there, keys.name_problem)
    if parent:
        yield from _parent(name, parent, there)
    for field in ("plugins", "disabled"):
        # Plugins that are not installed here may be named: a loadout is written for many places.
        for position, entry in enumerate(given.get(field, ())):
            if entry is not None and keys.name_problem(entry):
                message = f"{entry!r} is not a name: only 'discoverable' takes patterns. Name a plugin"
                tail = " or a tool." if field == "disabled" else "."
                yield findings.Found((field, position), message + tail)
    for position, category in enumerate(given.get("categories", ())):
        if category is not None and not there.has_category(category):
            yield findings.missing(("categories", position), "category", category, there.categories())
    for position, pattern in enumerate(given.get("discoverable", ())):
        if pattern is not None and not pattern.strip():
            message = "A pattern cannot be blank: write a name, the beginning of one with *, or * for all."
            yield findings.Found(("discoverable", position), message)
    for field in ("plugins", "categories", "discoverable", "disabled"):
        yield from catalog_rules.repeated(field, given.get(field, ()), keys.fold)
    plugins = {keys.fold(plugin) for plugin in given.get("plugins", ()) if plugin is not None}
    for position, entry in enumerate(given.get("disabled", ())):
        if entry is not None and keys.fold(entry) in plugins:
            message = (
                f"{entry!r} is brought in by 'plugins' and disabled at once: disabled wins. Take one out."
            )
            yield findings.Found(("disabled", position), message)


def _parent(name: str, parent: str, there: known.Known) -> Iterator[findings.Found]:
    own = keys.fold(name)
    if keys.fold(parent) != own and not there.has_loadout(parent):
        yield findings.missing(("parent",), "loadout", parent, loadouts.all_names(there.stored))
        return
    # The entry may be newer than what is known of it, so its own parent is the one given here.
    way = [name, parent]
    for link in loadouts.chain(there.stored.loadouts, parent):
        if keys.fold(way[-1]) == own:
            break
        way.append(link.parent)
    if keys.fold(way[-1]) == own:
        message = f"A loadout cannot be its own ancestor: {' → '.join(way)}. Give one of them another parent."
        yield findings.Found(("parent",), message)


def agent(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check an agent: its key, and that everything it names is there, once, and where it belongs."""
    yield from catalog_rules.naming("agent", given.get("key", ""), there, keys.name_problem)
    if (name := given.get("loadout", "")) and not there.has_loadout(name):
        yield findings.missing(("loadout",), "loadout", name, loadouts.all_names(there.stored))
    always = [use and use["tool"] for use in given.get("tools", ())]
    yield from catalog_rules.unknown("tools", always, "tool", there.stored.tools)
    yield from catalog_rules.repeated("tools", always)
    yield from _flat(given.get("tools_config", {}), there)
    yield from _ends(given)
    yield from _toolkits(given, there)
    session_loadouts = given.get("session_loadouts", ())
    for position, name in enumerate(session_loadouts):
        if name is not None and not there.has_loadout(name):
            yield findings.missing(
                ("session_loadouts", position), "loadout", name, loadouts.all_names(there.stored)
            )
    yield from catalog_rules.repeated("session_loadouts", session_loadouts, keys.fold)
    yield from catalog_rules.repeated("subagent_kinds", given.get("subagent_kinds", ()))


def _flat(tools_config: Given, there: known.Known) -> Iterator[findings.Found]:
    toolkits, tools = there.stored.toolkits, there.stored.tools
    nameless = [key for key in tools_config if key not in toolkits and key not in tools]
    among = [*toolkits, *tools] if nameless else []
    for key in nameless:
        yield findings.missing(("tools_config", key), "tool or toolkit", key, among)


def _ends(given: Given) -> Iterator[findings.Found]:
    flat = given.get("tools_config", {})
    for key, end in given.get("ends", {}).items():
        if end is None:
            continue
        if flat.get(key) is None:
            message = (
                f"{key!r} is not set in 'tools_config', so it cannot end: set it there, or take this out."
            )
            yield findings.Found(("ends", key), message)
        elif end.get("then") is flat[key]:
            message = (
                f"{key!r} would be then what it is now: give it no end, or say something else for 'then'."
            )
            yield findings.Found(("ends", key, "then"), message)


def _toolkits(given: Given, there: known.Known) -> Iterator[findings.Found]:
    toolkits = there.stored.toolkits
    allowed, initial = given.get("allowed_toolkits", ()), given.get("initial_toolkits", ())
    for field, names in (("allowed_toolkits", allowed), ("initial_toolkits", initial)):
        yield from catalog_rules.unknown(field, names, "toolkit", toolkits)
        yield from catalog_rules.repeated(field, names)
    for position, name in enumerate(initial):
        if name in toolkits and name not in allowed:
            message = f"{name!r} is not among the allowed toolkits: allow it too, or take it out here."
            yield findings.Found(("initial_toolkits", position), message)


def conflicting(written: Given, agent: agents.Agent, stored: catalog.Catalog) -> Iterator[errors.Problem]:
    """Find what brings one tool with different options to an agent that is otherwise sound.

    It is reported at the second source, as it stands in the agent's entry (``written``) or in the sub-app.
    """
    for conflict in conflicts.of_agent(stored, agent):
        second = conflict.second
        kind: vocabulary.KindName = "agent"
        owner = agent.key
        place: findings.Place = ("tools_config", second.name)
        match second.kind:
            case "sub-app":
                kind, owner = "sub_app", second.name
                place = _item("tool_names", stored.sub_apps[owner].tool_names, conflict.tool)
            case "initial":
                place = _item("initial_toolkits", written["initial_toolkits"], second.name)
        message = f"{conflict.message} Make the options equal, or let only one of them bring the tool."
        where = findings.address(vocabulary.KINDS[kind].section, owner, 0)
        yield from findings.problems(where, None, [findings.Found(place, message)], findings.Hints())


def _item(field: str, names: Sequence[str], name: str) -> findings.Place:
    return field, names.index(name)
