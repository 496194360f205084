"""Switches and overrides of an agent (docs/concepts.md: Switches and overrides; seed: Config Semantics).

Each is on, off or unset (its key is missing). Any switch that is off denies its tools, whatever the other switches are;
a switch that is on grants and selects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from toolbelt.core import agents, catalog

# The state of a switch or an override as it is logged: on, off, unset, or with its expiry.
SwitchState = bool | None | dict[str, Any]


def split(stored: catalog.Catalog, flat: Mapping[str, object]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Split the flat form into (switches, overrides). Values that are not booleans and unknown names are skipped."""
    switches: dict[str, bool] = {}
    overrides: dict[str, bool] = {}
    for key, value in flat.items():
        if not isinstance(value, bool):
            continue
        if key in stored.toolkits:
            switches[key] = value
        elif key in stored.tools:
            overrides[key] = value
    return switches, overrides


def switch_state(agent: agents.Agent, key: str) -> SwitchState:
    """Return the state of a switch or an override as JSON: on, off, unset (None), or ``{"on", "ends", "then"}``.

    The audit log stores the same form, so that undoing a change restores the expiry as well.
    """
    on = agent.switches.get(key, agent.overrides.get(key))
    return with_end(on, agent.ends.get(key))


def with_end(on: bool | None, end: agents.End | None) -> SwitchState:
    """Return the state with its expiry, if it has one."""
    return on if end is None else {"on": on, "ends": format_time(end.at), "then": end.then}


def is_on(value: SwitchState) -> bool | None:
    """Return whether a state is on, off or unset, without its expiry."""
    if not isinstance(value, dict):
        return value
    on = value.get("on")
    return on if isinstance(on, bool) else None


def expiry_of(value: SwitchState) -> agents.End | None:
    """Return the expiry of a state, if it has one."""
    at = parse_time(value.get("ends")) if isinstance(value, dict) else None
    if at is None or not isinstance(value, dict):
        return None
    then = value.get("then")
    return agents.End(at=at, then=then if isinstance(then, bool) else None)


def format_time(at: datetime) -> str:
    """Return a time as text, in UTC and to the second: ``2026-11-22T14:05:00Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def parse_time(text: object) -> datetime | None:
    """Return the time from ISO 8601 with a time zone, in UTC and to the second; None for anything else."""
    try:
        parsed = datetime.fromisoformat(text) if isinstance(text, str) else None
        if parsed is None or parsed.tzinfo is None:
            return None
        return parsed.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None


def describe_expiry(agent: agents.Agent, key: str) -> str:
    """Return when a switch or an override expires: ``until 2026-11-22 14:05 UTC (set by anna)``; empty if never."""
    end = agent.ends.get(key)
    if end is None:
        return ""
    return until(end.at) + (f" (set by {end.by})" if end.by else "")


def until(at: datetime | None) -> str:
    """Return when something ends: ``until 2026-11-22 14:05 UTC``; empty if it never does."""
    if at is None:
        return ""
    at = at.astimezone(UTC)
    return f"until {at:%Y-%m-%d %H:%M:%S} UTC" if at.second else f"until {at:%Y-%m-%d %H:%M} UTC"
