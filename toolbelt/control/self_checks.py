"""The self-check of proofs: recorded calls are decided again as everything was configured then.

If the reasons are those that were recorded, the replays of proofs are right, and so is the past that is rebuilt from
the audit log. Nothing is called, and nothing is written.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control import past
from toolbelt.core import replay, texts
from toolbelt.store import audit, clock, recorded_facts

DAYS = 30
# How many revisions are rebuilt: a random choice that is the same all day.
REVISIONS = 100
MAX_CALLS = 20_000
# How many calls that were decided otherwise are named.
MAX_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """How many recorded calls a replay decided again, and for the same reason.

    ``uncertain`` are calls before something was written around the audit log, or without the facts that decide.
    ``mismatches`` are the ids of calls that the replay decided otherwise.
    """

    days: int
    revisions: int
    calls: int
    reproduced: int
    uncertain: int
    mismatches: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """Return the result in one sentence."""
        if not self.calls:
            return f"No call of the last {self.days} days can be replayed as it was decided."
        share = self.reproduced / self.calls
        # 99.99 % is not 100 %.
        percent = "100" if self.reproduced == self.calls else f"{min(share * 100, 99.99):.2f}"
        verdicts = texts.counted(self.calls, "recorded verdict")
        left_out = f" {self.uncertain} could not be replayed." if self.uncertain else ""
        return f"Replays reproduce {percent} % of {verdicts} of the last {self.days} days.{left_out}"


def check(*, days: int = DAYS, revisions: int = REVISIONS) -> SelfCheck:
    """Decide the calls of some revisions again, at most :data:`MAX_CALLS` of them."""
    reader = recorded_facts.Reader(recorded_facts.Window(clock.now() - dt.timedelta(days=days)))
    every = reader.revisions()
    dice = random.Random(clock.now().date().toordinal())  # noqa: S311 - a sample, the same all day
    chosen = every if len(every) <= revisions else dice.sample(every, revisions)
    rebuilt = past.Past()
    judges: _Judges | None = None
    calls = uncertain = 0
    mismatches: list[int] = []
    for decided in itertools.islice(reader.decided(chosen), MAX_CALLS):
        if judges is None or decided.revision != judges.revision:
            judges = _Judges(rebuilt, decided)
        judge = judges.at(decided.facts.agent, decided.at)
        if judge is None or decided.facts.state is None or decided.facts.subagent is None:
            uncertain += 1
            continue
        calls += 1
        if judge.reason(decided.facts) != decided.reason:
            mismatches.append(decided.id)
    return SelfCheck(
        days=days,
        revisions=len(chosen),
        calls=calls,
        reproduced=calls - len(mismatches),
        uncertain=uncertain,
        mismatches=tuple(mismatches[:MAX_NAMED]),
    )


class _Judges:
    """The configuration of one revision, as it was at the times of its calls."""

    def __init__(self, rebuilt: past.Past, decided: recorded_facts.Decided) -> None:
        self.revision = decided.revision
        rebuilt.to(past.Place(audit.last_at(decided.revision), decided.at))
        self._past, self._catalog = rebuilt, rebuilt.compiled()
        self._judges: dict[tuple[str, str, tuple[str, ...]], replay.Judge] = {}

    def at(self, key: str, moment: dt.datetime) -> replay.Judge | None:
        """Return the configuration of an agent at a moment; None if it is uncertain, or there was no such agent."""
        history = self._past.history
        found = self._past.agent(key)
        if found is None or history.is_catalog_uncertain or key in history.uncertain_agents:
            return None
        stored, agent = self._catalog.as_of(moment), found[1]
        place = (key, stored.stamp, tuple(agent.expired(moment)))
        if place not in self._judges:
            now = agent.as_of(moment)
            self._judges[place] = replay.Judge(stored, {key: now}, conf.KIND_LOADOUTS, moment)
        return self._judges[place]
