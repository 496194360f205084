"""Proofs: what a change would have done to the calls that are recorded.

The change is made in a transaction that is rolled back. The calls are then decided again, without and with it
(:mod:`toolbelt.core.replay`): as everything is configured today, or as it was when each call was made
(:mod:`toolbelt.control.past_replays`). Nothing is called, and nothing is written.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt import conf
from toolbelt.control import past_replays, undo, writing
from toolbelt.control.config import belt_plans
from toolbelt.core import belts, errors, gate_rules, grants, reach, replay, texts
from toolbelt.store import audit, clock, recorded_facts, snapshots

DAYS, MAX_DAYS = 30, 365
# Which configuration decides the calls again: the one of today, or the one of their time.
Basis = Literal["now", "then"]
BASES: tuple[Basis, ...] = ("now", "then")
# Calls that ran in this time and would be refused are a reason to confirm a change.
RECENT = dt.timedelta(days=7)
# What each basis means, in a sentence.
MEANINGS: Mapping[Basis, str] = {
    "now": "Both sides are what is decided today.",
    "then": "Both sides are what was decided when each call was made, as everything was configured then.",
}
# How many calls of a row are named.
MAX_EXAMPLES = 3
# Below this share of the calls in reach, what a proof counts is only a lower bound.
FULL_COVERAGE = 0.95
CAVEAT = (
    "Calls are counted as they were made: without a tool, an agent might have called another one, or asked."
)


@dataclass(slots=True)
class Row:
    """Calls of one tool by one agent that would go otherwise, for one reason. ``ran`` are those that ran then;
    ``recent`` are those of them of the last :data:`RECENT`; ``examples`` are the ids of the newest.
    """

    agent: str
    tool: str
    before: replay.Kind
    after: replay.Kind
    words: str
    calls: int = 0
    ran: int = 0
    recent: int = 0
    sessions: set[str] = field(default_factory=set)
    examples: list[int] = field(default_factory=list)
    last: dt.datetime | None = None

    def count(self, outcome: str, calls: int, recent: int, last: dt.datetime) -> None:
        """Add calls that had this outcome: how many, how many of them lately, and when the last of them arrived."""
        self.calls += calls
        if outcome in replay.RAN:
            self.ran += calls
            self.recent += recent
        self.last = last if self.last is None else max(last, self.last)

    def name(self, call: int, session: str) -> None:
        """Add the id and the session (empty: none) of a call. Calls come in the order of the newest first."""
        if session:
            self.sessions.add(session)
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a change would have done to the calls of these days.

    ``calls`` are all that the change could concern, ``unproven`` those that cannot be decided again, by reason, and
    ``fields`` the arguments that would have to be recorded for that, by tool. ``rows`` are what would go otherwise.
    ``observed``: the calls were counted as they were made.
    """

    days: int
    basis: Basis = "now"
    since: dt.datetime
    calls: int
    rows: tuple[Row, ...]
    unproven: Mapping[replay.Reason, int]
    fields: Mapping[str, Collection[str]]
    observed: bool = False

    @property
    def is_nothing(self) -> bool:
        """Return whether no recorded call would go otherwise, as far as that is known."""
        return not self.rows

    @property
    def coverage(self) -> float:
        """Return the share of the calls that could be decided again."""
        return 1 - sum(self.unproven.values()) / self.calls if self.calls else 1.0

    def count(self, kind: replay.Kind) -> int:
        """Return how many calls would newly be of this kind."""
        return sum(row.calls for row in self.rows if row.after == kind)

    @property
    def sentence(self) -> str:
        """Return what would go otherwise, in one sentence."""
        days = texts.counted(self.days, "day")
        period = f"In {days} of observing," if self.observed else f"In the last {days}"
        if not self.calls:
            return f"{period} no call was recorded that this concerns."
        if not self.rows:
            return f"{period} this would have changed no recorded call."
        least = "" if self.coverage >= FULL_COVERAGE else "at least "
        parts: list[str] = []
        for kind, words in _MADE.items():
            rows = [row for row in self.rows if row.after == kind]
            if not rows:
                continue
            calls = sum(row.calls for row in rows)
            if parts:
                parts.append(words.format(f"{least}{calls:,}"))
            else:
                parts.append(f"{words.format(least + texts.counted(calls, 'call'))} {_whose(rows)}")
        *others, last = parts
        made = f"{', '.join(others)}, and {last}" if others else last
        return f"{period} this would have {made}."

    @property
    def brief(self) -> str:
        """Return what would go otherwise in a few words: ``41 calls refused, 7 load first``."""
        parts = [words.format(count) for kind, words in _BRIEF.items() if (count := self.count(kind))]
        return ", ".join(parts) or "no recorded call would go otherwise"

    @property
    def reason(self) -> str:
        """Return why this change should be confirmed: it refuses calls that ran lately; empty if it does not."""
        recent = sum(row.recent for row in self.rows if row.after == "refused")
        if not recent:
            return ""
        return (
            f"It would have refused {texts.counted(recent, 'call')} that ran in the last {RECENT.days} days."
        )

    @property
    def coverage_sentence(self) -> str:
        """Return how many of the calls could be decided again, and why others could not."""
        if not self.unproven:
            return f"All {texts.counted(self.calls, 'recorded call')} in its reach could be replayed."
        whys = [f"{count:,} {replay.REASONS[reason]}" for reason, count in self.unproven.items()]
        return (
            f"{self.coverage:.0%} of {texts.counted(self.calls, 'recorded call')} in its reach could be replayed;"
            f" not replayed: {', '.join(whys)}."
        )


# What becomes of calls: in a sentence, and in a few words.
_MADE: Mapping[replay.Kind, str] = {
    "refused": "refused {}",
    "load": "made {} load first",
    "ask": "asked a person about {}",
    "runs": "let {} run",
}
_BRIEF: Mapping[replay.Kind, str] = {
    "refused": "{:,} refused",
    "load": "{:,} must load first",
    "ask": "{:,} ask first",
    "runs": "{:,} admitted",
}
# What becomes of a call, for people and for programs.
WORDS: Mapping[replay.Kind, str] = {
    "refused": "is refused",
    "load": "must load the tool first",
    "ask": "waits for a person",
    "runs": "runs",
    "unknown": "is unknown",
}
NAMES: Mapping[replay.Kind, str] = {
    "refused": "refused",
    "load": "load_first",
    "ask": "ask_first",
    "runs": "admitted",
    "unknown": "unknown",
}


def _whose(rows: Collection[Row]) -> str:
    agents_ = len({row.agent for row in rows})
    sessions = len({(row.agent, session) for row in rows for session in row.sessions})
    words = f"of {texts.counted(agents_, 'agent')}"
    return f"{words} in {texts.counted(sessions, 'session')}" if sessions else words


def prove(act: Callable[[], object], *, days: int = DAYS, basis: Basis = "now") -> Proof:
    """Return what the change that ``act`` writes would have done; raise as it does. Nothing of it stays.

    ``act`` confirms what has to be confirmed.
    """
    if not 1 <= days <= MAX_DAYS:
        raise errors.Invalid([problem_of_days(days)])
    window = recorded_facts.Window(since=clock.now() - dt.timedelta(days=days))
    today, changed, changes = _try(act)
    if basis == "then":
        return _compare_then(today, changed, changes, window, days)
    return _compare(today, changed, window, days)


def measure(act: Callable[[], object], windows: Iterable[recorded_facts.Window], days: int) -> list[Proof]:
    """Return what the change that ``act`` writes would have done to the calls of each of these windows, which are of
    ``days`` days; raise as it does.
    """
    today, changed, _ = _try(act)
    return [_compare(today, changed, window, days) for window in windows]


def _try(act: Callable[[], object]) -> tuple[replay.Judge, replay.Judge, list[belts.LoggedChange]]:
    """Return the configuration without and with what ``act`` writes, and this as it would be logged."""
    with writing.dry_run():
        today, newest = as_configured(), audit.newest_id()
        act()
        return today, as_configured(), audit.logged_after(newest)


def problem_of_days(days: int) -> errors.Problem:
    """Return the problem of a number of days that no proof may have."""
    message = f"{days} is not a number of days: choose one from 1 to {MAX_DAYS}."
    return errors.Problem(path="days", message=message)


def of_belt(
    write: writing.Write,
    document: Mapping[str, Any],
    *,
    only: Collection[str] = (),
    prune: bool = False,
    days: int = DAYS,
    basis: Basis = "now",
) -> Proof:
    """Return what applying a belt would have done, as :func:`belt_plans.apply` would; raise as it does."""
    confirmed = write.replace(confirm=True)
    return prove(
        lambda: belt_plans.apply(confirmed, document, only=only, prune=prune), days=days, basis=basis
    )


def of_undo(write: writing.Write, entry: int, *, days: int = DAYS, basis: Basis = "now") -> Proof:
    """Return what undoing a change, with the others of its batch, would have done; raise as it would, confirmed."""
    confirmed = write.replace(confirm=True)
    return prove(lambda: undo.undo_batch(confirmed, entry), days=days, basis=basis)


def document(proof: Proof) -> dict[str, Any]:
    """Return a proof as plain values, for programs."""
    return {
        "days": proof.days,
        "basis": proof.basis,
        "since": grants.format_time(proof.since),
        "sentence": proof.sentence,
        "coverage_sentence": proof.coverage_sentence,
        "reason": proof.reason,
        "calls": proof.calls,
        "coverage": proof.coverage,
        **{NAMES[kind]: proof.count(kind) for kind in replay.KINDS},
        "unproven": dict(proof.unproven),
        "fields": {tool: list(names) for tool, names in proof.fields.items()},
        "rows": [
            {
                "agent": row.agent,
                "tool": row.tool,
                "today": NAMES[row.before],
                "changed": NAMES[row.after],
                "because": row.words,
                "calls": row.calls,
                "ran": row.ran,
                "sessions": len(row.sessions),
                "last": grants.format_time(row.last) if row.last is not None else None,
                "examples": row.examples,
            }
            for row in proof.rows
        ],
    }


def as_configured() -> replay.Judge:
    """Return the configuration as it is in this transaction."""
    every = [present.agent for archived in (False, True) for present in snapshots.present(archived=archived)]
    rollouts = {agent.rollout.trial for agent in every if agent.rollout is not None}
    return replay.Judge(
        snapshots.catalog(), {agent.key: agent for agent in every}, conf.KIND_LOADOUTS, clock.now(), rollouts
    )


def _compare(today: replay.Judge, changed: replay.Judge, window: recorded_facts.Window, days: int) -> Proof:
    """Decide the calls again as everything is configured today, without and with the change."""
    within = reach.between(today.catalog, changed.catalog, today.agents, changed.agents, conf.KIND_LOADOUTS)
    if today.catalog is not changed.catalog:
        # In a new arm, an agent may have another loadout or budget.
        rolled_out = (
            agent.key
            for judge in (today, changed)
            for agent in judge.agents.values()
            if agent.rollout is not None
        )
        within |= reach.Reach(agents=frozenset(rolled_out))
    argued = {
        tool.key
        for judge in (today, changed)
        for rule in judge.catalog.gate_rules.values()
        if rule.when or rule.unless
        for tool in gate_rules.tools_of(judge.catalog, rule)
    }
    table = _Table(window, days, "now")
    reader = recorded_facts.Reader(window, within=within, argued=argued)
    rows: dict[replay.Facts, Row] = {}
    for group in reader.grouped(table.recently):
        facts = group.facts
        if within.covers(facts.agent, facts.tool):
            answer = replay.compare(today, changed, facts)
            table.count(facts, answer, group.calls)
            if isinstance(answer, replay.Difference):
                row = rows[facts] = table.row(facts, answer)
                row.count(facts.outcome, group.calls, group.recent, group.last)
    for row, call, session in reader.sessions(rows) if rows else ():
        row.name(call, session)
    return table.proof()


def _compare_then(
    today: replay.Judge,
    changed: replay.Judge,
    changes: Collection[belts.LoggedChange],
    window: recorded_facts.Window,
    days: int,
) -> Proof:
    """Decide the calls again as everything was configured when they were made, without and with the change."""
    table = _Table(window, days, "then")
    # What a change of anything else concerned then, only its own time tells.
    only_agents = all(change.kind == "agent" or change.kind not in belts.KINDS for change in changes)
    names = frozenset(change.name for change in changes if change.kind == "agent")
    within = reach.Reach(agents=names) if only_agents else None
    reader = recorded_facts.Reader(window, within=within)
    for call, answer in past_replays.replays(reader, changes, (today, changed)):
        table.count(call.facts, answer, 1)
        if isinstance(answer, replay.Difference):
            row = table.row(call.facts, answer)
            row.count(call.facts.outcome, 1, call.at >= table.recently, call.at)
            row.name(call.id, call.session)
    return table.proof()


class _Table:
    """The counts of a proof and the rows of its table, while the calls are decided again. Calls since ``recently`` are
    recent.
    """

    def __init__(self, window: recorded_facts.Window, days: int, basis: Basis) -> None:
        self._since, self._days, self._basis = window.since, days, basis
        self.recently = clock.now() - RECENT
        self._calls = 0
        self._unproven = Counter[replay.Reason]()
        self._fields = defaultdict[str, set[str]](set)
        self._rows: dict[tuple[str, ...], Row] = {}

    def count(
        self, facts: replay.Facts, answer: replay.Difference | replay.Unproven | None, calls: int
    ) -> None:
        """Count calls with these facts, and what is unknown about them."""
        self._calls += calls
        if isinstance(answer, replay.Unproven):
            self._unproven[answer.reason] += calls
            self._fields[facts.tool].update(answer.fields)

    def row(self, facts: replay.Facts, difference: replay.Difference) -> Row:
        """Return the row of calls with these facts that would go otherwise."""
        before, after = difference
        place = (facts.agent, facts.tool, before.kind, after.kind, after.words)
        if (row := self._rows.get(place)) is None:
            row = self._rows[place] = Row(*place)
        return row

    def proof(self) -> Proof:
        """Return the proof: the rows with the most calls first."""
        return Proof(
            days=self._days,
            basis=self._basis,
            since=self._since,
            calls=self._calls,
            rows=in_order(self._rows.values()),
            unproven=dict(self._unproven.most_common()),
            fields={tool: sorted(names) for tool, names in sorted(self._fields.items()) if names},
        )


def in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows by what would become of their calls, those with the most calls first."""
    return tuple(
        sorted(rows, key=lambda row: (replay.KINDS.index(row.after), -row.calls, row.agent, row.tool))
    )
