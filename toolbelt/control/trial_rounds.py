"""What becomes of drafts that are tried, in the background of a server; of several servers, one at a time does it.

Observing is replaying that goes on: every minute, the calls that were recorded since are decided again, as everything
is configured and as it would be with the draft, and what would have gone otherwise is counted. Only the report reads
the counts, so that they cannot change an answer. A draft is applied at its time as the person who scheduled it, with
what they may do then, and only as it was seen. One that is rolled out is taken back as soon as the person who began it
could not apply it any more.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import cast

import structlog
from django.contrib import auth

from toolbelt import conf
from toolbelt.control import drafts, proofs, repeating, trials, writing
from toolbelt.control.access import expirations
from toolbelt.control.people import rights
from toolbelt.core import errors, replay, rollouts
from toolbelt.store import clock, credentials, locks, recorded_facts
from toolbelt.store import trials as rows

SECONDS = 60.0
# A record may be stored after another one with a higher id, for a moment.
DELAY = dt.timedelta(seconds=SECONDS)

# How a trial ends whose draft could not be applied any more.
_FAILED: Mapping[rows.Mode, rows.State] = {"observe": "stopped", "schedule": "failed", "rollout": "reverted"}

_log = structlog.get_logger(__name__)
# The newest record that this process has seen, in the round before.
_seen: int | None = None


def run(*, until: int | None = None) -> int:
    """Do one round, unless another process does: count what was recorded up to the record ``until`` (all), apply what
    is due, and discard the drafts whose time has come. Return how many trials are over now.
    """
    with locks.try_lock("trials") as is_held:
        if not is_held:
            return 0
        over = sum(map(functools.partial(_run_one, until), rows.running()))
        drafts.discard_ended()
        return over


def _run_one(until: int | None, trial: rows.Trial) -> bool:
    try:
        if trial.mode == "observe":
            return _count(trial, until)
        if trial.mode == "rollout":
            return _watch(trial)
        return trial.starts <= clock.now() and _apply(trial)
    except errors.Unavailable:
        raise
    except errors.ToolbeltError as error:
        # What it changes is not as it was, or may not be changed so any more.
        _end_trial(trial, _FAILED[trial.mode], str(error))
        return True
    except Exception:
        # The others go on.
        _log.exception("draft not tried", draft=str(trial.draft))
        return False


def _count(trial: rows.Trial, until: int | None) -> bool:
    """Count what was recorded since the last round; at its end, end the trial. Return whether it has ended."""
    now = clock.now()
    has_ended = now >= trial.ends + DELAY
    newest = recorded_facts.newest_id() if until is None else until
    # Calls around its end are counted once it has ended, because it may be extended before.
    if not has_ended and (trial.ends <= now or newest <= trial.mark):
        return False
    days = recorded_facts.Window(trial.starts, trial.ends, trial.mark, newest).days()
    draft = drafts.find(trial.draft)
    # The draft is observed as its author, who may not be able to make the change any more: only counted, never made.
    write = _by_author(trial).replace(confirm=True)
    proven = proofs.measure(lambda: drafts.make(write, draft), days, 1) if days else []
    with writing.begin():
        if rows.find(trial.pk) != trial:
            # It was stopped or extended meanwhile. What was not counted is in the next round.
            return False
        rows.add(
            trial,
            mark=max(trial.mark, newest),
            calls=sum(proof.calls for proof in proven),
            unproven=sum((Counter(proof.unproven) for proof in proven), Counter()),
            unknown=_union(proof.fields for proof in proven),
            days=[
                _day(row, day.since.date())
                for day, proof in zip(days, proven, strict=True)
                for row in proof.rows
            ],
        )
        if has_ended:
            rows.end(trial.pk, "ended")
    return has_ended


def _apply(trial: rows.Trial) -> bool:
    """Apply a draft at its time, as who scheduled it, if they still may. Raise as :func:`drafts.apply` does."""
    if clock.now() > trial.ends:
        raise errors.Refused(
            f"No server could apply it within {trials.LATEST // dt.timedelta(hours=1)} hour of its time."
        )
    with writing.begin():
        current = rows.find(trial.pk)
        if current is None or not current.is_running:
            return False
        _check(current)
        drafts.apply(_by_author(trial).replace(confirm=True), trial.draft)
    return True


def _watch(trial: rows.Trial) -> bool:
    """End a roll-out at its end. Raise if its draft could not be applied any more by who began it, or if the sessions
    that have it do worse.
    """
    if trial.ends <= clock.now():
        _end_trial(trial, "ended", "It has reached its end.")
        return True
    _check(trial)
    newest = recorded_facts.newest_id()
    if newest > trial.until:
        arms = rollouts.Arms(*rows.count_sessions(trial), _refused_sessions(trial))
        rows.set_arms(trial.pk, arms, newest)
        if (rollouts.is_due(trial.arms, arms) and arms.is_worse) or arms.refused >= rollouts.MAX_REFUSED:
            raise errors.Refused(trials.compare(arms))
    return False


def _refused_sessions(trial: rows.Trial) -> int:
    """Return in how many sessions of the new arm a call was refused that would not have been in the old one."""
    reader = recorded_facts.Reader(
        recorded_facts.Window(trial.starts, trial.ends, trial.mark, trial=trial.pk)
    )
    refused = [group.facts for group in reader.grouped(trial.starts) if group.facts.outcome not in replay.RAN]
    if not refused:
        return 0
    new = proofs.as_configured()
    old = replay.Judge(new.catalog, new.agents, conf.KIND_LOADOUTS, new.at)
    differences = {facts: replay.compare(old, new, facts) for facts in refused}
    caused = {
        facts: facts.agent
        for facts, answer in differences.items()
        if isinstance(answer, replay.Difference) and answer.after.kind == "refused"
    }
    return len({(agent, session) for agent, _, session in reader.sessions(caused)})


def _check(trial: rows.Trial) -> None:
    """Raise unless who began a trial may still apply its draft, as it was seen and with what was confirmed then."""
    draft, user = drafts.find(trial.draft), _user(trial)
    is_by_command = trial.mode == "rollout" and trial.via == "command"
    if not is_by_command and (user is None or not drafts.may_apply(user, draft)):
        raise errors.Refused(f"{trial.author}, who began it, may not make this change any more.")
    if not _is_token_valid(trial):
        raise errors.Refused(f"The token {trial.token}, with which it was begun, is not valid any more.")
    reasons = drafts.to_confirm(_by_author(trial).replace(confirm=True), draft)
    if new := [reason for reason in reasons if reason not in trial.confirmed]:
        raise errors.Refused(f"It would now have to be confirmed: {' '.join(new)}")


def _user(trial: rows.Trial) -> rights.User | None:
    """Return the user who scheduled a draft, if they may log in; not another one who got their name."""
    model = auth.get_user_model()
    found = model._default_manager.filter(pk=trial.user or 0, is_active=True).first()
    return found if found is not None and found.get_username() == trial.author else None


def _is_token_valid(trial: rows.Trial) -> bool:
    """Return whether requests with the token are accepted with which a draft was scheduled, if it was with one."""
    if trial.via != "api":
        return True
    stored = credentials.find(trial.token)
    return stored is not None and stored.user_id == trial.user and stored.token.is_valid(clock.now())


def _by_author(trial: rows.Trial) -> writing.Write:
    """Return a write by who began the trial, through the same interface: some things need a shell."""
    return writing.by(trial.author, via=cast("writing.Via", trial.via))


def _end_trial(trial: rows.Trial, state: rows.State, note: str = "") -> None:
    with writing.begin():
        current = rows.find(trial.pk)
        if current is None or not current.is_running:
            # Someone was faster.
            return
        rows.end(trial.pk, state, note)
        if trial.mode == "rollout":
            write = writing.Write(actor=expirations.SYSTEM, reason=note)
            before = {"title": trial.title, "percent": trial.percent, "agents": [*trial.agents]}
            writing.record(write, "draft", str(trial.draft), action="draft.revert", before=before, after=None)


def _day(row: proofs.Row, day: dt.date) -> rows.Day:
    return rows.Day(
        day=day,
        agent=row.agent,
        tool=row.tool,
        before=row.before,
        after=row.after,
        words=row.words,
        calls=row.calls,
        ran=row.ran,
        # Records are deleted one day, and with them the sessions' names.
        sessions=[hashlib.blake2b(name.encode(), digest_size=6).hexdigest() for name in row.sessions],
        examples=row.examples,
        last=row.last or clock.now(),
    )


def _union(named: Iterable[Mapping[str, Collection[str]]]) -> dict[str, Collection[str]]:
    total: dict[str, set[str]] = {}
    for each in named:
        for tool, names in each.items():
            total.setdefault(tool, set()).update(names)
    return dict(total)


def _work() -> None:
    global _seen
    # Only what was there a round ago: what is stored at the same time may still be missing before it.
    seen, _seen = _seen, recorded_facts.newest_id()
    if seen is not None:
        run(until=seen)


_thread = repeating.Repeating("toolbelt-trials", _work, SECONDS, "drafts not tried")
start, stop = _thread.start, _thread.stop
