"""Proofs: what a change would have done to the calls that are recorded.

The change is made in a transaction that is rolled back. The calls are then decided again, as they are configured today
and as they would be (:mod:`toolbelt.core.replay`): nothing is called, and nothing is written.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt import conf
from toolbelt.control import undo, writing
from toolbelt.control.config import belt_plans
from toolbelt.core import agents, errors, gate_rules, grants, replay, texts
from toolbelt.store import clock, recorded_facts, snapshots

DAYS, MAX_DAYS = 30, 365
# Calls that ran in this time and would be refused are a reason to confirm a change.
RECENT = dt.timedelta(days=7)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a change would have done to the calls of these days.

    ``calls`` are all that the change could concern, ``unproven`` those that cannot be decided again, by reason, and
    ``fields`` the arguments that would have to be recorded for that, by tool. ``rows`` are what would go otherwise.
    ``observed``: the calls were counted as they were made.
    """

    days: int
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
        for kind, (first, further) in _MADE.items():
            rows = [row for row in self.rows if row.after == kind]
            if not rows:
                continue
            calls = sum(row.calls for row in rows)
            if parts:
                parts.append(further.format(f"{least}{calls}"))
            else:
                parts.append(f"{first.format(least + texts.counted(calls, 'call'))} {_whose(rows)}")
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
        whys = [f"{count} {replay.REASONS[reason]}" for reason, count in self.unproven.items()]
        return (
            f"{self.coverage:.0%} of {texts.counted(self.calls, 'recorded call')} in its reach could be replayed;"
            f" not replayed: {', '.join(whys)}."
        )


# What becomes of calls: of the kind that is named first, and of a further one.
_MADE: Mapping[replay.Kind, tuple[str, str]] = {
    "refused": ("refused {}", "refused {}"),
    "load": ("made {} load first", "made {} load first"),
    "ask": ("asked a person about {}", "asked a person about {}"),
    "runs": ("let {} run", "let {} run"),
}


_BRIEF: Mapping[replay.Kind, str] = {
    "refused": "{} refused",
    "load": "{} must load first",
    "ask": "{} ask first",
    "runs": "{} admitted",
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


def prove(act: Callable[[], object], *, days: int = DAYS) -> Proof:
    """Return what the change that ``act`` writes would have done; raise as it does. Nothing of it stays.

    ``act`` confirms what has to be confirmed.
    """
    if not 1 <= days <= MAX_DAYS:
        raise errors.Invalid([problem_of_days(days)])
    return measure(act, recorded_facts.Window(since=clock.now() - dt.timedelta(days=days)), days)


def measure(act: Callable[[], object], window: recorded_facts.Window, days: int) -> Proof:
    """Return what the change that ``act`` writes would have done to the calls of a window; raise as it does."""
    with writing.dry_run():
        today = _judge()
        act()
        changed = _judge()
    return _compare(today, changed, window, days)


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
) -> Proof:
    """Return what applying a belt would have done, as :func:`belt_plans.apply` would; raise as it does."""
    confirmed = write.replace(confirm=True)
    return prove(lambda: belt_plans.apply(confirmed, document, only=only, prune=prune), days=days)


def of_undo(write: writing.Write, entry: int, *, days: int = DAYS) -> Proof:
    """Return what undoing a change, with the others of its batch, would have done; raise as the undo does."""
    return prove(lambda: undo.undo_batch(write, entry), days=days)


def document(proof: Proof) -> dict[str, Any]:
    """Return a proof as plain values, for programs."""
    return {
        "days": proof.days,
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


def _judge() -> replay.Judge:
    """Return the configuration as it is in this transaction."""
    every = [present.agent for archived in (False, True) for present in snapshots.present(archived=archived)]
    return replay.Judge(
        snapshots.catalog(), {agent.key: agent for agent in every}, conf.KIND_LOADOUTS, clock.now()
    )


def _compare(today: replay.Judge, changed: replay.Judge, window: recorded_facts.Window, days: int) -> Proof:
    names = None if today.catalog is not changed.catalog else _differing(today.agents, changed.agents)
    argued = {
        tool.key
        for judge in (today, changed)
        for rule in judge.catalog.gate_rules.values()
        if rule.when or rule.unless
        for tool in gate_rules.tools_of(judge.catalog, rule)
    }
    reader = recorded_facts.Reader(window, agents=names, argued=argued)
    calls, unproven, fields = 0, Counter[replay.Reason](), defaultdict[str, set[str]](set)
    differences: dict[replay.Facts, replay.Difference] = {}
    for facts, count in reader.grouped():
        calls += count
        answer = replay.compare(today, changed, facts)
        if isinstance(answer, replay.Difference):
            differences[facts] = answer
        elif answer is not None:
            unproven[answer.reason] += count
            fields[facts.tool].update(answer.fields)
    return Proof(
        days=days,
        since=window.since,
        calls=calls,
        rows=_rows(reader, differences),
        unproven=dict(unproven.most_common()),
        fields={tool: sorted(names) for tool, names in sorted(fields.items()) if names},
    )


def _rows(
    reader: recorded_facts.Reader, differences: Mapping[replay.Facts, replay.Difference]
) -> tuple[Row, ...]:
    """Return the calls that would go otherwise by agent, tool and reason, those with the most calls first."""
    rows: dict[tuple[str, ...], Row] = {}
    recently = clock.now() - RECENT
    for call, at, session, facts in reader.newest_first(differences) if differences else ():
        before, after = differences[facts]
        place = (facts.agent, facts.tool, before.kind, after.kind, after.words)
        if (row := rows.get(place)) is None:
            row = rows[place] = Row(*place, last=at)
        row.calls += 1
        if facts.outcome in replay.RAN:
            row.ran += 1
            row.recent += at >= recently
        if session:
            row.sessions.add(session)
        if len(row.examples) < MAX_EXAMPLES:
            row.examples.append(call)
    return in_order(rows.values())


def in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows by what would become of their calls, those with the most calls first."""
    return tuple(
        sorted(rows, key=lambda row: (replay.KINDS.index(row.after), -row.calls, row.agent, row.tool))
    )


def _differing(before: Mapping[str, agents.Agent], after: Mapping[str, agents.Agent]) -> set[str]:
    """Return the agents that differ: if the catalog is the same, only their calls can go otherwise."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
