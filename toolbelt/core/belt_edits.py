"""Edits of a belt, as a scenario's steps describe them (docs/how-to/test-your-configuration.md)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from toolbelt.core import grants


def apply_edit(
    document: Mapping[str, Any], entries: Mapping[str, list[dict[str, Any]]], now: datetime | None = None
) -> dict[str, Any]:
    """Return the belt after an edit; an entry with a new key or name is appended.

    Switches, overrides and blocks that have expired by ``now`` are applied first, as every writer does. A switch that
    changes without a new expiry has none, and neither has a block.
    """
    after = copy.deepcopy(dict(document))
    for section, changes in entries.items():
        existing = after[section] = after.get(section) or []
        for change in changes:
            naming = "name" if "name" in change else "key"
            match = next((entry for entry in existing if entry.get(naming) == change.get(naming)), None)
            if match is None:
                existing.append(copy.deepcopy(change))
                continue
            if section == "agents" and isinstance(match.get("ends"), Mapping):
                _apply_expired(match, now)
                if "tools_config" in change and "ends" not in change:
                    match["ends"] = _remaining_ends(match, change["tools_config"] or {})
            if _has_ended(match.get("block_ends"), now):
                match.pop("blocked", None)
                match.pop("block_ends", None)
            if "blocked" in change:
                match.pop("block_ends", None)
            match.update(copy.deepcopy(change))
    return after


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any], section: str) -> set[str]:
    """Return the fields in which entries of a section differ between two belts; ``before`` has no other entries."""
    earlier = {_name(entry): entry for entry in before.get(section, ())}
    return {
        key
        for entry in after.get(section, ())
        for old in [earlier.get(_name(entry), {})]
        for key in {**old, **entry}
        if old.get(key) != entry.get(key)
    }


def _name(entry: Mapping[str, Any]) -> Any:
    return entry.get("name", entry.get("key"))


def _apply_expired(entry: dict[str, Any], now: datetime | None) -> None:
    for key, end in list(entry["ends"].items()):
        if _has_ended(end.get("at"), now):
            del entry["ends"][key]
            entry["tools_config"][key] = end.get("then")


def _has_ended(end: Any, now: datetime | None) -> bool:
    at = grants.parse_time(end)
    return now is not None and at is not None and at <= now


def _remaining_ends(entry: Mapping[str, Any], requested: Mapping[str, Any]) -> dict[str, Any]:
    current = entry.get("tools_config") or {}
    return {
        key: end
        for key, end in entry["ends"].items()
        if requested.get(key) is not None and requested[key] is current.get(key)
    }
