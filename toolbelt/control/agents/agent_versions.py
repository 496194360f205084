"""Past versions of an agent, rebuilt with the rest of the configuration from the audit log, and what its model would
have received; nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import past
from toolbelt.core import agents, catalog, errors, surface
from toolbelt.store import audit, snapshots

Moment = past.Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An agent as it was, and the ``catalog`` as it was. ``last`` is the agent's newest change by then, None before the
    first that is logged.

    ``gaps`` are fields and keys that were changed without the log, whose values are uncertain; ``is_uncertain``: the
    log says that something was written around it since. ``missing`` are names in it that no longer exist: what they
    grant or deny cannot be copied.
    """

    agent: agents.Agent
    catalog: catalog.Catalog
    entry: Mapping[str, Any]
    moment: Moment
    last: audit.Entry | None
    gaps: tuple[str, ...]
    is_uncertain: bool
    missing: tuple[str, ...]


def rebuild(agent: str, moment: Moment) -> Version:
    """Return the agent as it was at a moment; raise errors.NotFound if it did not exist then or does not exist now."""
    return rebuild_each(agent, [moment])[0]


def rebuild_each(agent: str, moments: Iterable[Moment]) -> list[Version]:
    """Return the agent as it was at each moment; raise errors.NotFound as :func:`rebuild` does."""
    now = snapshots.catalog()
    places = [(past.place(moment), moment) for moment in moments]
    walk, versions = past.Past(agent), {}
    for place, moment in sorted(places, key=lambda item: item[0].entry, reverse=True):
        walk.to(place)
        versions[moment] = _version(agent, walk, place, moment, now)
    return [versions[moment] for _, moment in places]


def surface_of(version: Version, message: str | None = None, subagent: str | None = None) -> surface.Surface:
    """Return the surface that the model would receive from a past version, outside any session."""
    return surface.build(snapshots.of(version.catalog, version.agent, subagent=subagent), message)


def _version(key: str, walk: past.Past, place: past.Place, moment: Moment, now: catalog.Catalog) -> Version:
    found = walk.agent(key)
    if found is None:
        raise errors.NotFound("agent at that time", key)
    entry, agent = found
    return Version(
        agent=agent.as_of(place.at),
        catalog=walk.compiled().as_of(place.at),
        entry=entry,
        moment=moment,
        last=audit.newest_until(place.entry, "agent", key),
        gaps=walk.history.gaps_of("agent", key),
        is_uncertain=walk.history.is_uncertain(key),
        missing=tuple(missing_names(now, entry)),
    )


def missing_names(stored: catalog.Catalog, entry: Mapping[str, Any]) -> list[str]:
    """Return the names in an agent's entry that no longer exist."""
    uses = (use if isinstance(use, str) else use["tool"] for use in entry.get("tools") or ())
    names = (*(entry.get("tools_config") or ()), *uses, *(entry.get("allowed_toolkits") or ()))
    return [key for key in dict.fromkeys(names) if key not in stored.tools and key not in stored.toolkits]
