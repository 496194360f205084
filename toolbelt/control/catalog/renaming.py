"""Carrying settings over to renamed tools: everything that names a tool by its key.

That is toolkits, their notes and triggers, agents' own tools and overrides, sub-apps, gate rules, and what loadouts
disable or make discoverable. A grant moves to the new name. A denial or a rule applies to both names from then on,
so that a server cannot shake it off by renaming a tool, even back and forth.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.core import catalog, errors, grants, keys
from toolbelt.store import entries as rows

Names = Mapping[str, str]

# The fields of entries that list tools, as keys or as uses with options.
_LISTS = {
    "toolkit": ("members",),
    "loadout": ("discoverable", "disabled"),
    "agent": ("tools",),
    "sub_app": ("tool_names",),
    "gate_rule": ("tools",),
}
# The kinds whose patterns ignore case.
_FOLDED = frozenset({"loadout", "gate_rule"})
_SECTIONS = {
    "toolkits": "toolkit",
    "loadouts": "loadout",
    "agents": "agent",
    "sub_apps": "sub_app",
    "gate_rules": "gate_rule",
}


def operator_settings(tool: catalog.Tool) -> dict[str, Any]:
    """Return the fields that operators set for a tool itself."""
    settings = {
        "category": tool.category,
        "default_on": tool.default_on,
        "policy": tool.policy,
        "recorded_fields": list(tool.recorded_fields),
        "blocked": tool.blocked,
        "block_ends": grants.format_time(tool.block_ends) if tool.block_ends else "",
    }
    return {field: value for field, value in settings.items() if value}


def carry_over(write: writing.Write, names: Names) -> list[errors.Problem]:
    """Change every entry so that it grants the new names (by old name) instead of the old ones, and denies both.

    Return the problems of what could not be changed. Raise errors.Refused if that is an agent or a loadout that denies
    an old name: the new name would not be denied.
    """
    problems: list[errors.Problem] = []
    stored = rows.export()
    for section, kind in _SECTIONS.items():
        for entry in stored.get(section, ()):
            new_entry = renamed(kind, entry, names)
            if new_entry == entry:
                continue
            try:
                entries.put(write.replace(confirm=True), kind, new_entry, even_archived=True)
            except errors.ToolbeltError as error:
                path = f"{section}.{entry[entries.name_field(kind)]}"
                if denied := _denials(kind, entry, names):
                    raise errors.Refused(
                        f"Nothing was approved, because {path} denies {', '.join(denied)}, and this denial cannot be"
                        f" carried over: {error}"
                    ) from error
                problems.append(errors.Problem(path=path, message=f"It still has the old name: {error}"))
    return problems


def renamed(kind: str, entry: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return the entry with the new names, and with the old ones as well where it denies them.

    If both names are in a list, the first position is kept.
    """
    result = dict(entry)
    folded = {keys.fold(old): new for old, new in names.items()} if kind in _FOLDED else names
    for field in _LISTS[kind]:
        if field in entry:
            result[field] = (
                _denied(entry[field], folded)
                if field == "disabled" or kind == "gate_rule"
                else _listed(entry[field], folded, fold=kind in _FOLDED)
            )
    if kind == "agent" and "tools_config" in entry:
        result["tools_config"] = _switched(entry["tools_config"], names)
        if "ends" in entry:
            result["ends"] = _ending(entry, result["tools_config"], names)
    if kind == "toolkit":
        if "tool_notes" in entry:
            notes = entry["tool_notes"]
            result["tool_notes"] = {names.get(key, key): note for key, note in notes.items()}
        if "triggers" in entry:
            result["triggers"] = [_triggered(trigger, names) for trigger in entry["triggers"]]
    return result


def _listed(uses: Any, names: Names, *, fold: bool) -> list[Any]:
    by_key: dict[str, Any] = {}
    for use in uses:
        key = use["tool"] if isinstance(use, Mapping) else use
        new = names.get(keys.fold(key) if fold else key, key)
        by_key.setdefault(new, {**use, "tool": new} if isinstance(use, Mapping) else new)
    return list(by_key.values())


def _denied(patterns: Iterable[str], names: Names) -> list[str]:
    by_key: dict[str, str] = {}
    for pattern in patterns:
        for key in (pattern, names.get(keys.fold(pattern), pattern)):
            by_key.setdefault(keys.fold(key), key)
    return list(by_key.values())


def _denials(kind: str, entry: Mapping[str, Any], names: Names) -> list[str]:
    """Return the old names that an agent, a loadout or a rule denies."""
    if kind == "loadout":
        disabled = {keys.fold(pattern) for pattern in entry.get("disabled", ())}
        return [old for old in names if keys.fold(old) in disabled]
    if kind == "gate_rule" and entry.get("effect") == "deny":
        covered = {keys.fold(pattern) for pattern in entry.get("tools", ())}
        return [old for old in names if keys.fold(old) in covered]
    config = entry.get("tools_config", {}) if kind == "agent" else {}
    return [old for old in names if config.get(old) is False]


def _switched(config: Mapping[str, bool], names: Names) -> dict[str, bool]:
    result: dict[str, bool] = {}
    for key, on in config.items():
        new = names.get(key, key)
        if not on:
            # The old name stays off: if the tool is listed again, it is still approved.
            result[key] = False
        # If either name is denied, the new one is.
        result[new] = on and result.get(new, True)
    return result


def _ending(entry: Mapping[str, Any], config: Mapping[str, bool], names: Names) -> dict[str, Any]:
    """Return the ends of the new ``config``. If both names have one, a grant ends at the earlier, a denial at the later
    of them.
    """
    result: dict[str, Any] = {}
    for key, on in config.items():
        merged = [
            old for old, was in entry["tools_config"].items() if was is on and key in (old, names.get(old))
        ]
        ends = sorted(
            (entry["ends"][old] for old in merged if old in entry["ends"]),
            key=lambda end: dt.datetime.fromisoformat(end["at"]),
        )
        if on and ends:
            result[key] = ends[0]
        elif ends and len(ends) == len(merged):
            result[key] = ends[-1]
    return result


def _triggered(trigger: Mapping[str, Any], names: Names) -> dict[str, Any]:
    if "focus" not in trigger:
        return dict(trigger)
    return {**trigger, "focus": _listed(trigger["focus"], names, fold=False)}
