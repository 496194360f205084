"""Recorded calls, decided again as everything was configured when they were made, without and with a change.

The configuration steps back through the audit log, and so do two judges: each step replaces what it changed, and drops
only the verdicts that it can concern. The change is made to each state of the past (:func:`belts.changed`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from toolbelt import conf
from toolbelt.control import past
from toolbelt.core import belts, catalog, reach, replay, sessions
from toolbelt.store import audit, recorded_facts

Subject = tuple[str, str]


class Answer(NamedTuple):
    """A recorded call in reach of the change, and how it would have gone otherwise, or why that is unknown."""

    call: recorded_facts.Recorded
    answer: replay.Difference | replay.Unproven | None


class Side:
    """One side of the comparison: a judge that follows a configuration which changes entry by entry."""

    def __init__(self, compiled: past.Compiled, at: dt.datetime) -> None:
        self._compiled = compiled
        self._judge = replay.Judge(compiled.stored(), {}, conf.KIND_LOADOUTS, at, None)
        self._variants: dict[tuple[Any, ...], replay.Judge] = {}

    @property
    def catalog(self) -> catalog.Catalog:
        """Return the catalog of the state."""
        return self._judge.catalog

    def step(self, changed: Iterable[Subject]) -> None:
        """Follow a step that changed these entries."""
        self._variants.clear()
        before, after = self._judge.catalog, self._compiled.stored()
        if after is before:
            return
        concerned = _reach(changed, before, after)
        self._judge.set_catalog(after, None if concerned.is_all else concerned.tools, concerned.agents)

    def at(self, key: str, moment: dt.datetime) -> replay.Judge:
        """Return the judge of the calls of an agent at a moment."""
        agent, judge = self._compiled.agent(key), self._judge
        if agent is not judge.agents.get(key):
            judge.set_agent(key, agent)
        stored = judge.catalog.as_of(moment)
        expired = () if agent is None else tuple(agent.expired(moment))
        if stored is not judge.catalog or expired:
            # What has ended is logged later than it ended.
            slot = (key, id(stored), expired)
            if slot not in self._variants:
                among = {} if agent is None else {key: agent.as_of(moment)}
                self._variants[slot] = replay.Judge(stored, among, conf.KIND_LOADOUTS, moment, None)
            judge = self._variants[slot]
        judge.at = moment
        return judge

    def defers(self, key: str) -> bool:
        """Return whether the budget of an agent defers tools, so that each depends on all others."""
        agent = self._compiled.agent(key)
        return agent is not None and agent.budget is not None and agent.budget.defers


class Changed:
    """The past with a change made to each of its states."""

    def __init__(self, was: past.Past, changes: Iterable[belts.LoggedChange]) -> None:
        self._history = was.history
        self._changes: dict[Subject, list[belts.LoggedChange]] = {}
        self._orders: list[belts.LoggedChange] = []
        for change in changes:
            if change.action.endswith(".order"):
                self._orders.append(change)
            elif change.kind in belts.KINDS:
                self._changes.setdefault((change.kind, change.name), []).append(change)
        self.compiled = past.Compiled(was.now, self._find, self._names)
        for kind, name in self._changes:
            self.compiled.change(kind, name)
        for order in self._orders:
            self.compiled.change(order.kind, "")

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Return the entries that the change is about; of an order, its kind."""
        return (*self._changes, *((order.kind, "") for order in self._orders))

    def missing(self) -> Iterator[Subject]:
        """Yield the entries that the change is about, and that did not exist."""
        for (kind, name), changes in self._changes.items():
            is_new = changes[0].before is None and not changes[0].key
            if not is_new and self._history.find(cast("belts.KindName", kind), name) is None:
                yield kind, name

    def _find(self, kind: belts.KindName, name: str) -> Mapping[str, Any] | None:
        entry = self._history.find(kind, name)
        for change in self._changes.get((kind, name), ()):
            entry = belts.changed(kind, entry, change)
        return entry

    def _names(self, kind: belts.KindName) -> list[str]:
        about = dict.fromkeys(name for other, name in self._changes if other == kind)
        names = [*dict.fromkeys([*self._history.names(kind), *about])]
        names = [name for name in names if name not in about or self._find(kind, name) is not None]
        for order in self._orders:
            if order.kind == kind:
                names = belts.reordered(names, order)
        return names


def replays(
    reader: recorded_facts.Reader,
    changes: Iterable[belts.LoggedChange],
    now: tuple[replay.Judge, replay.Judge],
) -> Iterator[Answer]:
    """Yield the calls in reach of a change, those of the newest revision first. ``now`` is today's configuration,
    without and with the change.
    """
    was = past.Past()
    changed = Changed(was, changes)
    base, other = Side(was.values, now[0].at), Side(changed.compiled, now[0].at)
    last = audit.last_by_revision()
    revision: int | None = None
    covered = _reach(changed.subjects, base.catalog, other.catalog)
    missing = reach.NOTHING
    for recorded, number in reader.by_revision():
        agent, tool = recorded.facts.agent, recorded.facts.tool
        if number is not None and number != revision:
            steps = was.to(past.Place(last(number), recorded.at))
            for subject in steps:
                changed.compiled.change(*subject)
            base.step(steps)
            other.step(steps)
            if steps or revision is None:
                covered = _reach(changed.subjects, base.catalog, other.catalog)
                missing = _reach_now(changed.missing(), now)
            revision = number
        # In a new arm, the agent may have another loadout or budget.
        depends = bool(covered.tools) and (
            other.defers(agent) or sessions.arm(recorded.facts.state) is not None
        )
        is_covered = depends or covered.covers(agent, tool)
        if not is_covered and not missing.covers(agent, tool):
            continue
        if number is None:
            yield Answer(recorded, replay.Unproven("no-revision"))
            continue
        before, after = base.at(agent, recorded.at), other.at(agent, recorded.at)
        answer: replay.Difference | replay.Unproven | None
        if agent not in before.agents or was.history.is_uncertain(agent):
            answer = replay.Unproven("history-gap")
        else:
            answer = replay.compare(before, after, recorded.facts)
        if answer is None and missing.covers(agent, tool):
            answer = replay.Unproven("not-there-yet")
        yield Answer(recorded, answer)


def _reach(subjects: Iterable[Subject], before: catalog.Catalog, after: catalog.Catalog) -> reach.Reach:
    """Return what changes of these entries can concern. Whose budget defers is not known here."""
    found = reach.NOTHING
    for kind, name in subjects:
        if kind == "agent":
            found |= reach.Reach(agents=frozenset({name}))
        elif kind == "loadout" or not name:
            return reach.EVERYTHING
        elif kind in belts.KINDS:
            section = belts.KINDS[cast("belts.KindName", kind)].section
            found |= reach.of_entry(section, name, before, after, (), conf.KIND_LOADOUTS)
    return reach.EVERYTHING if before.brings != after.brings else found


def _reach_now(subjects: Iterable[Subject], now: tuple[replay.Judge, replay.Judge]) -> reach.Reach:
    """Return what changes of these entries concern today."""
    found = reach.NOTHING
    among = now[1].agents
    for kind, name in subjects:
        if kind == "loadout":
            found |= reach.having(name, now[1].catalog, among.values(), conf.KIND_LOADOUTS)
        elif kind != "agent":
            section = belts.KINDS[cast("belts.KindName", kind)].section
            found |= reach.of_entry(
                section, name, now[0].catalog, now[1].catalog, among.values(), conf.KIND_LOADOUTS
            )
    return found
