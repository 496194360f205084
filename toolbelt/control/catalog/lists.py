"""Filtered lists of what is configured, kind by kind. Read in a fixed number of queries; nothing here writes.

The catalog is in memory, so its entries are filtered there, by effective values (a tool's category may be its plugin's)
and not only by stored columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.core import belts, catalog, errors, gate_rules, keys
from toolbelt.store import agents, snapshots

_Trait = Callable[[catalog.Catalog, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the matching entries, in stored order, and the number of all of them."""

    entries: tuple[dict[str, Any], ...]
    total: int


def page(
    kind: belts.KindName,
    *,
    text: str = "",
    filters: Mapping[str, Any] | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Page:
    """Return at most ``limit`` matching entries from ``offset``.

    ``text`` must be contained in a name, a title or a description, ignoring case. ``filters`` are required values by
    the names of :data:`TRAITS`; None: any value.
    """
    stored = snapshots.catalog()
    required = {name: value for name, value in (filters or {}).items() if value is not None}
    matching = [value for value in _values(kind, stored) if _matches(kind, stored, value, text, required)]
    values = matching[offset : offset + limit]
    if kind == "agent":
        # They were filtered without all their rows.
        values = agents.load_all(key__in=[agent.key for agent in values])
    return Page(entries=tuple(_entry(kind, value) for value in values), total=len(matching))


def _values(kind: belts.KindName, stored: catalog.Catalog) -> Iterable[Any]:
    match kind:
        case "category":
            return stored.categories
        case "plugin":
            return stored.plugins.values()
        case "tool":
            return stored.tools.values()
        case "toolkit":
            return stored.toolkits.values()
        case "loadout":
            return stored.loadouts.values()
        case "agent":
            return agents.load_labels()
        case "sub_app":
            return stored.sub_apps.values()
        case "gate_rule":
            return stored.gate_rules.values()


def _entry(kind: belts.KindName, value: Any) -> dict[str, Any]:
    entry = belts.entry(kind, value)
    return {"name": entry} if kind == "category" else entry


def _matches(
    kind: belts.KindName, stored: catalog.Catalog, value: Any, text: str, required: Mapping[str, Any]
) -> bool:
    if text and not any(keys.fold(text) in keys.fold(searched) for searched in _texts(value)):
        return False
    for name, expected in required.items():
        trait = TRAITS[kind].get(name)
        if trait is None:
            raise errors.NotFound(f"trait of a {belts.KINDS[kind].word}", name, TRAITS[kind])
        actual = trait(stored, value)
        if expected not in actual if isinstance(actual, tuple) else actual != expected:
            return False
    return True


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return [getattr(value, field, "") for field in ("key", "name", "title", "description", "role")]


def _attribute(name: str) -> _Trait:
    return lambda stored, value: getattr(value, name)


# What entries can be filtered by; of a tuple, any item may match.
TRAITS: Mapping[belts.KindName, Mapping[str, _Trait]] = {
    "category": {},
    "plugin": {name: _attribute(name) for name in ("category", "status", "active", "trusted", "blocked")},
    "tool": {
        **{name: _attribute(name) for name in ("plugin", "blocked", "retired", "seen")},
        "category": lambda stored, tool: stored.category(tool),
        "toolkit": lambda stored, tool: tuple(kit.key for kit in stored.toolkits_of.get(tool.key, ())),
    },
    "toolkit": {
        **{name: _attribute(name) for name in ("plugin", "blocked")},
        "tool": lambda stored, toolkit: tuple(member.tool for member in toolkit.members),
    },
    "loadout": {"parent": _attribute("parent")},
    "agent": {
        **{name: _attribute(name) for name in ("kind", "protected", "archived")},
        "loadout": lambda stored, agent: agent.loadout_name(conf.KIND_LOADOUTS),
    },
    "sub_app": {
        "agent": lambda stored, sub_app: sub_app.agents,
        "tool": lambda stored, sub_app: sub_app.tool_names,
    },
    "gate_rule": {
        **{name: _attribute(name) for name in ("effect", "observed")},
        "agent": lambda stored, rule: rule.agents,
        "tool": lambda stored, rule: tuple(tool.key for tool in gate_rules.tools_of(stored, rule)),
    },
}
