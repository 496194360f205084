"""Past versions of an agent, reconstructed from the audit log, and what its model would have received; nothing here
writes.

The log records what the agent was, not what the catalog was: a past version is resolved with today's catalog.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, belts, catalog, errors, surface
from toolbelt.store import audit, snapshots

# The id of an audit entry, for the state right after it; or a point in time.
Moment = int | dt.datetime
# The largest id that a database stores as a key of the log.
MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An agent as it was. ``last`` is its newest change by then, None before the first that is logged.

    ``gaps`` are fields and keys that were changed without the log, whose values are uncertain. ``missing`` are names in
    it that no longer exist: what they granted or denied is left out.
    """

    agent: agents.Agent
    entry: Mapping[str, Any]
    moment: Moment
    last: audit.Entry | None
    gaps: tuple[str, ...]
    missing: tuple[str, ...]


def rebuild(agent: str, moment: Moment) -> Version:
    """Return the agent as it was at a moment; raise errors.NotFound if it did not exist then or does not exist now."""
    return rebuild_from(snapshots.find(agent, None), moment)


def rebuild_from(current: snapshots.StoredState, moment: Moment) -> Version:
    """Return a past version of an agent, given its current state."""
    key = current.agent.key
    last, after, at = _last(key, moment)
    changes = [
        belts.LoggedChange(key=name, before=before, after=after_change)
        for action, name, before, after_change in audit.since(after, "agent", key)
        # The agent's position and its operators are not part of its entry.
        if not action.endswith((".order", ".operators"))
    ]
    # From the stored rows, because an expiry that is not recorded yet is not in the log either.
    rebuilt = belts.rewind(belts.entry("agent", current.written), changes)
    if rebuilt.entry is None:
        raise errors.NotFound("agent at that time", key)
    whole = belts.entry("agent", current.written, with_secrets=True)
    entry = belts.restored("agent", {**rebuilt.entry, "key": key}, whole)
    agent: agents.Agent = belts.value("agent", entry, current.catalog)
    return Version(
        agent=agent.as_of(at),
        entry=rebuilt.entry,
        moment=moment,
        last=last,
        gaps=rebuilt.gaps,
        missing=tuple(missing_names(current.catalog, rebuilt.entry)),
    )


def surface_of(
    stored: catalog.Catalog, agent: agents.Agent, message: str | None = None, subagent: str | None = None
) -> surface.Surface:
    """Return the surface that the model would receive from this agent, outside any session."""
    return surface.build(snapshots.of(stored, agent, subagent=subagent), message)


def missing_names(stored: catalog.Catalog, entry: Mapping[str, Any]) -> list[str]:
    """Return the names in an agent's entry that no longer exist."""
    uses = (use if isinstance(use, str) else use["tool"] for use in entry.get("tools") or ())
    names = (*(entry.get("tools_config") or ()), *uses, *(entry.get("allowed_toolkits") or ()))
    return [key for key in dict.fromkeys(names) if key not in stored.tools and key not in stored.toolkits]


def _last(agent: str, moment: Moment) -> tuple[audit.Entry | None, int, dt.datetime]:
    """Return the newest entry of the agent by then, the id after which everything is later, and the time."""
    if isinstance(moment, dt.datetime):
        last = audit.newest_at(moment, "agent", agent)
        return last, last.id if last else 0, moment
    last = audit.find(moment) if moment <= MAX_INTEGER else None
    if last is None:
        raise errors.NotFound("change", str(moment))
    if last.batch is not None:
        # A batch is one step, so its first entries alone were never in force.
        last = next((entry for entry in audit.of_batch(last.batch) if _is_of(entry, agent)), last)
    return (last if _is_of(last, agent) else None), last.id, last.at


def _is_of(entry: audit.Entry, agent: str) -> bool:
    return entry.subject_kind == "agent" and entry.subject_key == agent
