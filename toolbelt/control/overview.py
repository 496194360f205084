"""What does somebody want to know who comes in? How the agents stand, what changed today, and what needs an eye.

Read in a fixed number of queries, however much there is; nothing here writes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolbelt import conf
from toolbelt.control import holdings, queries
from toolbelt.core import catalog, inventory, reasons, resolution
from toolbelt.store import audit, call_figures, listings, plugins, snapshots

# An override is stale where it says something that comes to nothing.
Why = Literal["retired", "without effect", "superfluous"]


class Stale(NamedTuple):
    """An override that does nothing, and why: :func:`because` says it in words."""

    tool: str
    on: bool
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A plugin that has failed, and what it said of that, if it said something."""

    plugin: catalog.Plugin
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How things stand. ``listed`` are the first of the agents, with their newest changes; ``total`` is how many tools
    there are; ``waiting`` how many wait for a look, by plugin; ``stopped`` what is blocked for everyone (kind, name);
    ``calls`` is None where they were not asked for.
    """

    agents: Sequence[queries.Summary]
    listed: Sequence[queries.Summary]
    total: int
    today: audit.Page
    last: audit.Entry | None
    broken: Sequence[Broken]
    waiting: Mapping[str, int]
    stopped: Sequence[tuple[str, str]]
    stale: Sequence[tuple[queries.Summary, Sequence[Stale]]]
    calls: Sequence[call_figures.OfDay] | None


def now(*, today: dt.datetime, most: int, most_agents: int, calls_since: dt.datetime | None) -> Overview:
    """Look at everything: at most so many changes since ``today`` began, and calls since then, if a time is given.
    So many agents are listed.
    """
    summaries, stored = queries.summaries(), snapshots.catalog()
    changes = audit.page(since=today, size=most)
    last = next(iter(changes.entries), None) or next(iter(audit.page(size=1).entries), None)
    return Overview(
        agents=summaries,
        listed=queries.with_last(summaries[:most_agents]),
        total=len(stored.tools),
        today=changes,
        last=last,
        broken=_broken(stored),
        waiting=_waiting(stored),
        stopped=tuple(_stopped(stored)),
        stale=tuple((one, found) for one in summaries if (found := tuple(_stale(one)))),
        calls=None if calls_since is None else call_figures.by_day(since=calls_since),
    )


def _broken(stored: catalog.Catalog) -> list[Broken]:
    failed = [one for one in stored.plugins.values() if one.active and one.status == "failed"]
    if not failed:
        return []
    said, told = plugins.errors(), listings.every()
    return [
        Broken(plugin=one, error=said.get(one.name) or (told[one.name].error if one.name in told else ""))
        for one in failed
    ]


def _waiting(stored: catalog.Catalog) -> dict[str, int]:
    found: dict[str, int] = {}
    for tool in stored.tools.values():
        if tool.plugin and not tool.retired and (not tool.seen or tool.approved_version):
            found[tool.plugin] = found.get(tool.plugin, 0) + 1
    return found


def _stopped(stored: catalog.Catalog) -> Iterator[tuple[str, str]]:
    for plugin in stored.plugins.values():
        if plugin.blocked:
            yield "plugin", plugin.name
    for toolkit in stored.toolkits.values():
        if toolkit.blocked:
            yield "toolkit", toolkit.key
    for tool in stored.tools.values():
        if tool.blocked:
            yield "tool", tool.key


def because(one: queries.Summary, stale: Stale) -> str:
    """Return in words why an override of this agent does nothing."""
    if stale.why == "superfluous":
        return reasons.in_words(resolution.decide(_without_overrides(one).standing, stale.tool))
    return reasons.in_words(one.holder.decision(stale.tool))


def _stale(one: queries.Summary) -> Iterator[Stale]:
    """Find the overrides that come to nothing. What a budget may take away is left out: there they do something."""
    stored, budget = one.holder.catalog, one.agent.budget
    overrides = [(key, on) for key, on in sorted(one.agent.overrides.items()) if key in stored.tools]
    if not overrides:
        return
    may_be_deferred = budget is not None and budget.on_exceed == "defer"
    without = _without_overrides(one)
    denied = inventory.denied(stored, without.agent, conf.KIND_LOADOUTS)
    closed = holdings.closed(stored)
    for key, on in overrides:
        shut = closed.get(key)
        if stored.tools[key].retired:
            yield Stale(key, on, "retired")
        elif on and key not in one.inventory.active:
            yield Stale(key, on, "without effect")
        elif (on and not may_be_deferred and key in without.active) or (
            not on and (shut.state == "denied" if shut is not None else key in denied)
        ):
            yield Stale(key, on, "superfluous")


def _without_overrides(one: queries.Summary) -> holdings.Holder:
    """Return the agent as it would be without its overrides, and without its budget."""
    agent = dataclasses.replace(one.agent, overrides={}, budget=None)
    return holdings.Holder(agent=agent, catalog=one.holder.catalog)
