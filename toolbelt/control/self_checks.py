"""The self-check of proofs: recorded calls are decided again as everything was configured then.

If the reasons are those that were recorded, the replays of proofs are right, and so is the past that is rebuilt from
the audit log. Nothing is called, and no configuration is written. A server makes the check once a night, and stores its
result.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import random
from dataclasses import dataclass

import structlog
from django.utils import timezone

from toolbelt.control import past, past_replays, repeating
from toolbelt.core import texts
from toolbelt.store import audit, clock, locks, recorded_facts
from toolbelt.store import self_checks as rows

DAYS = 30
# How many revisions are rebuilt: a random choice that is the same all day.
REVISIONS = 100
MAX_CALLS = 20_000
# How many calls that were decided otherwise are named.
MAX_NAMED = 20
# When a night's check is due, and how often a server looks whether it is.
HOUR, SECONDS = 3, 900.0
# An older result says nothing about today.
FRESH = dt.timedelta(hours=36)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck(rows.Result):
    """How many recorded calls a replay decided again, and for the same reason (:class:`rows.Result`)."""

    @property
    def sentence(self) -> str:
        """Return the result in one sentence."""
        if not self.calls:
            return f"No call of the last {self.days} days can be replayed as it was decided."
        share = self.reproduced / self.calls
        # 99.99 % is not 100 %.
        percent = "100" if self.reproduced == self.calls else f"{min(share * 100, 99.99):.2f}"
        verdicts = texts.counted(self.calls, "recorded verdict")
        left_out = f" {self.uncertain:,} could not be replayed." if self.uncertain else ""
        return f"Replays reproduce {percent} % of {verdicts} of the last {self.days} days.{left_out}"


def check(*, days: int = DAYS, revisions: int = REVISIONS) -> SelfCheck:
    """Decide the calls of some revisions again, at most :data:`MAX_CALLS` of them."""
    reader = recorded_facts.Reader(recorded_facts.Window(clock.now() - dt.timedelta(days=days)))
    every = reader.revisions()
    dice = random.Random(clock.now().date().toordinal())  # noqa: S311 - a sample, the same all day
    chosen = every if len(every) <= revisions else dice.sample(every, revisions)
    was = past.Past()
    side = past_replays.Side(was.values, clock.now())
    last = audit.last_by_revision()
    revision = calls = uncertain = 0
    mismatches: list[int] = []
    for decided in itertools.islice(reader.decided(chosen), MAX_CALLS):
        if decided.revision != revision:
            revision = decided.revision
            side.step(was.to(past.Place(last(revision), decided.at)))
        facts = decided.facts
        judge = side.at(facts.agent, decided.at)
        is_known = facts.state is not None and facts.subagent is not None
        if not is_known or facts.agent not in judge.agents or was.history.is_uncertain(facts.agent):
            uncertain += 1
            continue
        calls += 1
        if judge.reason(facts) != decided.reason:
            mismatches.append(decided.id)
    return SelfCheck(
        at=clock.now(),
        days=days,
        revisions=len(chosen),
        calls=calls,
        reproduced=calls - len(mismatches),
        uncertain=uncertain,
        mismatches=tuple(mismatches[:MAX_NAMED]),
    )


def latest() -> SelfCheck | None:
    """Return the result of the last night; None if there is none of the last :data:`FRESH`."""
    found = rows.find()
    return (
        SelfCheck(**dataclasses.asdict(found))
        if found is not None and found.at > clock.now() - FRESH
        else None
    )


def current() -> SelfCheck:
    """Return the result of the last night, or make the check now."""
    return latest() or check()


def run_due() -> SelfCheck | None:
    """Make the check of this night, if no process has, and store it; return it, or None."""
    if _is_made():
        return None
    with locks.try_lock("self-check") as is_ours:
        if not is_ours or _is_made():
            return None
        checked = check()
        rows.store(checked)
        return checked


def _is_made() -> bool:
    """Return whether there is a result since the last :data:`HOUR` o'clock, in the server's time zone."""
    found, now = rows.find(), timezone.localtime(clock.now())
    night = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
    return found is not None and found.at >= (night if night <= now else night - dt.timedelta(days=1))


def _run() -> None:
    if (checked := run_due()) is not None and checked.mismatches:
        _log.error("replays decided otherwise", calls=checked.mismatches)


_thread = repeating.Repeating("toolbelt-self-check", _run, SECONDS, "replays not checked")
start, stop = _thread.start, _thread.stop
