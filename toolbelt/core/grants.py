"""May this agent ever use this tool? (semantics: tools_config; seed: Config Semantics)

Switches and overrides are each on, off or unset (the key is not there). Any switch that is off decides, whatever
the other switches say; a switch that is on selects as well as permits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from toolbelt.core import agents, catalog

# What a switch or an override is, as the audit keeps it: on, off, unset, or with its end.
Said = bool | None | dict[str, Any]


def split(stored: catalog.Catalog, flat: Mapping[str, object]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Part the flat form into (switches, overrides). What is neither true nor false, or names nothing, is unset."""
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


def switch_off_over(stored: catalog.Catalog, agent: agents.Agent, tool: str) -> str | None:
    """Name the first toolkit over the tool whose switch is off, or None."""
    for toolkit in stored.toolkits_of.get(tool, ()):
        if agent.switches.get(toolkit.key) is False:
            return toolkit.key
    return None


def said(agent: agents.Agent, key: str) -> Said:
    """Say how a switch or an override stands, as JSON: on or off, unset (None), or ``{"on", "ends", "then"}``.

    The same form is kept by the audit, so that undoing brings back the end, too.
    """
    on = agent.switches.get(key, agent.overrides.get(key))
    return with_end(on, agent.ends.get(key))


def with_end(on: bool | None, end: agents.End | None) -> Said:
    """Say what is on or off, with its end if it has one."""
    return on if end is None else {"on": on, "ends": written(end.at), "then": end.then}


def is_on(value: Said) -> bool | None:
    """Read from what :func:`said` gives whether it is on, off or unset, its end aside."""
    if not isinstance(value, dict):
        return value
    on = value.get("on")
    return on if isinstance(on, bool) else None


def end(value: Said) -> agents.End | None:
    """Read from what :func:`said` gives when it ends, and what stands then."""
    at = moment(value.get("ends")) if isinstance(value, dict) else None
    if at is None or not isinstance(value, dict):
        return None
    then = value.get("then")
    return agents.End(at=at, then=then if isinstance(then, bool) else None)


def written(at: datetime) -> str:
    """Write a moment, in UTC and to the second: ``2026-11-22T14:05:00Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def moment(text: object) -> datetime | None:
    """Read a moment as it is written in ISO 8601 with its zone; None for anything else. To the second, in UTC."""
    try:
        read = datetime.fromisoformat(text) if isinstance(text, str) else None
        if read is None or read.tzinfo is None:
            return None
        return read.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None


def until(agent: agents.Agent, key: str) -> str:
    """Say until when a switch or an override stands: ``until 2026-11-22 14:05 UTC (set by anna)``; empty: for good."""
    end = agent.ends.get(key)
    if end is None:
        return ""
    at = end.at.astimezone(UTC)
    shown = f"{at:%Y-%m-%d %H:%M:%S}" if at.second else f"{at:%Y-%m-%d %H:%M}"
    return f"until {shown} UTC" + (f" (set by {end.by})" if end.by else "")
