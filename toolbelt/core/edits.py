"""What does a belt say after an operator's edit? (the scenario files: Steps)"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from toolbelt.core import grants


def edited(
    document: Mapping[str, Any], entries: Mapping[str, list[dict[str, Any]]], now: datetime | None = None
) -> dict[str, Any]:
    """Give the belt after an edit; an entry whose key or name is new is added at the end.

    What of an agent is over by ``now`` is written down first, as by every writer; and what is set otherwise without a
    word on its end stands for good.
    """
    after = copy.deepcopy(dict(document))
    for section, changes in entries.items():
        known = after[section] = after.get(section) or []
        for change in changes:
            naming = "name" if "name" in change else "key"
            match = next((entry for entry in known if entry.get(naming) == change.get(naming)), None)
            if match is None:
                known.append(copy.deepcopy(change))
                continue
            if section == "agents" and isinstance(match.get("ends"), Mapping):
                _write_what_is_over(match, now)
                if "tools_config" in change and "ends" not in change:
                    match["ends"] = _still_ending(match, change["tools_config"] or {})
            match.update(copy.deepcopy(change))
    return after


def changed(before: Mapping[str, Any], after: Mapping[str, Any], section: str) -> set[str]:
    """Name the keys in which some entry of a section differs, from one belt to another that has all of them."""
    had = {_name(entry): entry for entry in before.get(section, ())}
    return {
        key
        for entry in after.get(section, ())
        for was in [had.get(_name(entry), {})]
        for key in {**was, **entry}
        if was.get(key) != entry.get(key)
    }


def _name(entry: Mapping[str, Any]) -> Any:
    return entry.get("name", entry.get("key"))


def _write_what_is_over(entry: dict[str, Any], now: datetime | None) -> None:
    for key, end in list(entry["ends"].items()):
        at = grants.moment(end.get("at"))
        if now is not None and at is not None and at <= now:
            del entry["ends"][key]
            entry["tools_config"][key] = end.get("then")


def _still_ending(entry: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    had = entry.get("tools_config") or {}
    return {
        key: end
        for key, end in entry["ends"].items()
        if wanted.get(key) is not None and wanted[key] is had.get(key)
    }
