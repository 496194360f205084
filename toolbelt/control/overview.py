"""What does somebody want to know who comes in? How the agents stand, what changed today, and what needs an eye.

Read in a fixed number of queries, however much there is; nothing here writes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolbelt import conf
from toolbelt.control import queries
from toolbelt.core import catalog, reasons, resolution
from toolbelt.store import audit, call_figures, listings, plugins, snapshots

# An override is stale where it says something that comes to nothing.
Why = Literal["retired", "without effect", "superfluous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """An override of ``agent`` that does nothing: ``because`` says it in words."""

    agent: str
    tool: str
    on: bool
    why: Why
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A plugin that has failed, and what it said of that, if it said something."""

    plugin: catalog.Plugin
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How things stand. ``total`` is how many tools there are; ``waiting`` how many wait for a look, by plugin;
    ``stopped`` what is blocked for everyone (kind, name); ``calls`` is None where they were not asked for.
    """

    agents: Sequence[queries.Summary]
    total: int
    today: audit.Page
    last: audit.Entry | None
    broken: Sequence[Broken]
    waiting: Mapping[str, int]
    stopped: Sequence[tuple[str, str]]
    stale: Sequence[Stale]
    calls: Sequence[call_figures.OfDay] | None


def now(*, today: dt.datetime, most: int, calls_since: dt.datetime | None) -> Overview:
    """Look at everything: at most so many changes since ``today`` began, and calls since then, if a time is given."""
    summaries, stored = queries.summaries(), snapshots.catalog()
    changes = audit.page(since=today, size=most)
    last = next(iter(changes.entries), None) or next(iter(audit.page(size=1).entries), None)
    return Overview(
        agents=summaries,
        total=len(stored.tools),
        today=changes,
        last=last,
        broken=_broken(stored),
        waiting=_waiting(stored),
        stopped=tuple(_stopped(stored)),
        stale=tuple(stale for one in summaries for stale in _stale(one)),
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


def _stale(one: queries.Summary) -> Iterator[Stale]:
    """Find the overrides that come to nothing. What a budget may take away is left out: there they do something."""
    resolved = one.surface.resolution
    standing = resolved.standing
    stored, budget = standing.catalog, one.agent.budget
    if not one.agent.overrides:
        return
    may_be_deferred = budget is not None and budget.on_exceed == "defer"
    without = resolution.stand(
        resolution.Snapshot(
            catalog=stored,
            agent=dataclasses.replace(one.agent, overrides={}),
            kind_loadouts=conf.KIND_LOADOUTS,
        )
    )
    for key, on in sorted(one.agent.overrides.items()):
        if key not in stored.tools:
            continue
        now_ = resolved.decision(key)
        else_ = resolution.decide(without, key)
        why: Why | None = None
        because = else_
        if stored.tools[key].retired:
            why, because = "retired", now_
        elif on and now_.state != "active":
            why, because = "without effect", now_
        elif (on and else_.state == "active" and not may_be_deferred) or (not on and else_.state == "denied"):
            why = "superfluous"
        if why is not None:
            yield Stale(agent=one.agent.key, tool=key, on=on, why=why, because=reasons.in_words(because))
