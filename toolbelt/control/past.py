"""What was an agent at some moment, and what would its model have got? Rebuilt from the log; nothing here writes.

The log says what the agent was, not what the catalog was: a version of the past is resolved in the catalog of today.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.core import agents, belts, catalog, errors, resolution, surface
from toolbelt.store import audit, snapshots

# The id of an audit entry, after which it is looked at; or a point in time.
Moment = int | dt.datetime
# The longest id that a database holds in a key of the log.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An agent as it was. ``last`` is the newest change of it by then, None before the first one that is known.

    ``gaps`` are fields and keys that were changed without the log: what they were is not certain. ``gone`` are names
    in it that nothing has any more: whatever they granted or denied is left out.
    """

    agent: agents.Agent
    entry: Mapping[str, Any]
    moment: Moment
    last: audit.Entry | None
    gaps: tuple[str, ...]
    gone: tuple[str, ...]


def version(agent: str, moment: Moment) -> Version:
    """Rebuild the agent as it was at a moment. Raises errors.NotFound where it was not there, or is not now."""
    return of(snapshots.find(agent, None), moment)


def of(found: snapshots.Found, moment: Moment) -> Version:
    """Rebuild an agent that was found as it is."""
    key = found.agent.key
    last, after, at = _last(key, moment)
    changes = [
        belts.Logged(key=name, before=before, after=left)
        for action, name, before, left in audit.since(after, "agent", key)
        # Where it stands, and who operates it, is not in its entry.
        if not action.endswith((".order", ".operators"))
    ]
    # As its rows are: what is over by itself, and not written down yet, is not in the log either.
    rebuilt = belts.back(belts.entry("agent", found.written), changes)
    if rebuilt.entry is None:
        raise errors.NotFound("agent at that time", key)
    agent: agents.Agent = belts.value("agent", {**rebuilt.entry, "key": key}, found.catalog)
    return Version(
        agent=agent.standing(at),
        entry=rebuilt.entry,
        moment=moment,
        last=last,
        gaps=rebuilt.gaps,
        gone=tuple(missing(found.catalog, rebuilt.entry)),
    )


def surface_of(
    stored: catalog.Catalog, agent: agents.Agent, message: str | None = None, subagent: str | None = None
) -> surface.Surface:
    """Give what the model would get of an agent like this, outside any session."""
    return surface.build(
        resolution.Snapshot(catalog=stored, agent=agent, subagent=subagent, kind_loadouts=conf.KIND_LOADOUTS),
        message,
    )


def missing(stored: catalog.Catalog, entry: Mapping[str, Any]) -> list[str]:
    """Name what an agent's entry names and nothing is called any more."""
    uses = (use if isinstance(use, str) else use["tool"] for use in entry.get("tools") or ())
    named = (*(entry.get("tools_config") or ()), *uses, *(entry.get("allowed_toolkits") or ()))
    return [key for key in dict.fromkeys(named) if key not in stored.tools and key not in stored.toolkits]


def _last(agent: str, moment: Moment) -> tuple[audit.Entry | None, int, dt.datetime]:
    """Give the newest entry of the agent by then, the id behind which everything came later, and the time."""
    if isinstance(moment, dt.datetime):
        last = audit.before(moment, "agent", agent)
        return last, last.id if last else 0, moment
    last = audit.find(moment) if moment <= LARGEST else None
    if last is None:
        raise errors.NotFound("change", str(moment))
    if last.batch is not None:
        # What was done in one act was never half done.
        last = next((one for one in audit.of_batch(last.batch) if _is_of(one, agent)), last)
    return (last if _is_of(last, agent) else None), last.id, last.at


def _is_of(entry: audit.Entry, agent: str) -> bool:
    return entry.subject_kind == "agent" and entry.subject_key == agent
