"""What of a tool goes over to the one that it is called now, and how?

Whatever names a tool by its key: toolkits, their notes and triggers, agents' own tools and overrides, sub-apps, and
what loadouts disable or let be discovered. A grant moves. A denial counts for both names from then on: a server
does not shake one off by calling a tool otherwise, nor by calling it so again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.control import actors, entries
from toolbelt.core import catalog, errors, keys
from toolbelt.store import entries as rows

Names = Mapping[str, str]

# Where an entry lists tools, as keys or as uses with options.
_LISTS = {
    "toolkit": ("members",),
    "loadout": ("discoverable", "disabled"),
    "agent": ("tools",),
    "sub_app": ("tool_names",),
}
_SECTIONS = {"toolkits": "toolkit", "loadouts": "loadout", "agents": "agent", "sub_apps": "sub_app"}


def kept(tool: catalog.Tool) -> dict[str, Any]:
    """Give what operators made of a tool itself."""
    made = {
        "category": tool.category,
        "default_on": tool.default_on,
        "policy": tool.policy,
        "blocked": tool.blocked,
    }
    return {field: value for field, value in made.items() if value}


def carry_over(actor: actors.Actor, names: Names, *, reason: str, batch: uuid.UUID) -> list[errors.Problem]:
    """Let every entry grant the new names (by the old ones) in place of the old, and deny both.

    Gives what could not be changed.
    """
    problems: list[errors.Problem] = []
    stored = rows.export()
    for section, kind in _SECTIONS.items():
        for entry in stored.get(section, ()):
            wanted = renamed(kind, entry, names)
            if wanted == entry:
                continue
            try:
                entries.put(actor, kind, wanted, reason=reason, confirm=True, batch=batch)
            except errors.ToolbeltError as error:
                path = f"{section}.{entry[entries.naming(kind)]}"
                problems.append(errors.Problem(path=path, message=f"It keeps the old name: {error}"))
    return problems


def renamed(kind: str, entry: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Give the entry with the new names in it, and with the old ones where it denies those.

    Where both names stand in a list, the first place counts.
    """
    wanted = dict(entry)
    folded = {keys.fold(old): new for old, new in names.items()} if kind == "loadout" else names
    for field in _LISTS[kind]:
        if field in entry:
            wanted[field] = (
                _denied(entry[field], folded)
                if field == "disabled"
                else _listed(entry[field], folded, fold=kind == "loadout")
            )
    if kind == "agent" and "tools_config" in entry:
        wanted["tools_config"] = _switched(entry["tools_config"], names)
    if kind == "toolkit":
        if "tool_notes" in entry:
            notes = entry["tool_notes"]
            wanted["tool_notes"] = {names.get(key, key): note for key, note in notes.items()}
        if "triggers" in entry:
            wanted["triggers"] = [_triggered(trigger, names) for trigger in entry["triggers"]]
    return wanted


def _listed(uses: Any, names: Names, *, fold: bool) -> list[Any]:
    found: dict[str, Any] = {}
    for use in uses:
        key = use["tool"] if isinstance(use, Mapping) else use
        new = names.get(keys.fold(key) if fold else key, key)
        found.setdefault(new, {**use, "tool": new} if isinstance(use, Mapping) else new)
    return list(found.values())


def _denied(patterns: Iterable[str], names: Names) -> list[str]:
    found: dict[str, str] = {}
    for pattern in patterns:
        for key in (pattern, names.get(keys.fold(pattern), pattern)):
            found.setdefault(keys.fold(key), key)
    return list(found.values())


def _switched(config: Mapping[str, bool], names: Names) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for key, on in config.items():
        new = names.get(key, key)
        if not on:
            # The old name stays off: its tool is approved as it was, and there again when it is listed again.
            found[key] = False
        # Said of both, a denial counts.
        found[new] = on and found.get(new, True)
    return found


def _triggered(trigger: Mapping[str, Any], names: Names) -> dict[str, Any]:
    if "focus" not in trigger:
        return dict(trigger)
    return {**trigger, "focus": _listed(trigger["focus"], names, fold=False)}
