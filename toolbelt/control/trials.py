"""Trials of drafts: observed for a while, applied at a time, or rolled out to some sessions first
(docs/how-to/try-a-change.md).

What runs in the background is in :mod:`toolbelt.control.trial_rounds`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import cast

from toolbelt.control import drafts, proofs, writing
from toolbelt.control.people import users
from toolbelt.core import errors, grants, replay, rollouts, texts
from toolbelt.store import audit, clock, recorded_facts
from toolbelt.store import trials as rows

Trial = rows.Trial
latest, latest_of, running, undecided = rows.latest, rows.latest_of, rows.running, rows.undecided
numbered = rows.numbered
# How long a draft is observed, by default and at most, and how long it is kept to be decided about.
DAYS, MAX_DAYS = 14, 90
_DECIDED_WITHIN = dt.timedelta(days=14)
# How long after its time a draft is still applied, if no server could do it before.
LATEST = dt.timedelta(hours=1)
MAX_AHEAD = dt.timedelta(days=90)
# What is done with a draft, in a word.
WORDS: Mapping[rows.Mode, str] = {"observe": "observed", "schedule": "scheduled", "rollout": "rolled out"}
_HIDDEN = "Those who may read what the draft changes see why on its page."
# The share of sessions that a draft is rolled out to, by default.
PERCENT = 5


def observe(write: writing.Write, key: uuid.UUID | str, *, ends: dt.datetime | None = None) -> Trial:
    """Observe a draft from now on, until ``ends``: :data:`DAYS` by default.

    Raise errors.Refused if it is tried already, and as :func:`drafts.apply` does if it could not be applied now.
    """
    now = clock.now()
    ends = _end(ends, now)
    drafts.check(write.replace(confirm=True), drafts.find(key))
    with writing.begin():
        draft = _to_try(key)
        trial = rows.begin(
            draft.key,
            "observe",
            author=write.actor.name,
            via=write.actor.via,
            starts=now,
            ends=ends,
            mark=recorded_facts.newest_id(),
        )
        drafts.keep_until(draft, ends + _DECIDED_WITHIN)
        after = {"title": draft.title, "ends": grants.format_time(ends)}
        writing.record(write, "draft", str(draft.key), action="draft.observe", before=None, after=after)
    return trial


def extend(write: writing.Write, key: uuid.UUID | str, *, ends: dt.datetime | None = None) -> Trial:
    """Observe a draft until another end, :data:`DAYS` from now by default; what was counted stays.

    Raise errors.Refused if it is not observed.
    """
    ends = _end(ends, clock.now())
    with writing.begin():
        draft = _open(key)
        trial = _running(draft)
        if trial.mode != "observe":
            raise errors.Refused(f"This draft is {WORDS[trial.mode]}, and not observed.")
        rows.move_end(trial.pk, ends)
        drafts.keep_until(draft, ends + _DECIDED_WITHIN)
        before, after = (
            {"title": draft.title, "ends": grants.format_time(each)} for each in (trial.ends, ends)
        )
        writing.record(write, "draft", str(draft.key), action="draft.extend", before=before, after=after)
    return dataclasses.replace(trial, ends=ends)


def observe_until(write: writing.Write, key: uuid.UUID | str, ends: dt.datetime | None) -> Trial:
    """Observe a draft from now on, or until another end if it is observed; raise as :func:`observe` and :func:`extend`
    do.
    """
    trial = latest(drafts.find(key).key)
    act = extend if trial is not None and trial.is_running else observe
    return act(write, key, ends=ends)


def schedule(write: writing.Write, key: uuid.UUID | str, starts: dt.datetime, *, token: str = "") -> Trial:
    """Apply a draft at a time, as the writer, who sent the ``token`` with this prefix, or none; what has to be
    confirmed is confirmed now, and nothing else.

    Raise errors.Invalid for a time that is past or far away, errors.Refused if it is tried already, and as
    :func:`drafts.apply` does if it could not be applied now.
    """
    now = clock.now()
    if starts.tzinfo is None or not now < starts <= now + MAX_AHEAD:
        message = f"Choose a time in the next {MAX_AHEAD.days} days, with its zone."
        raise errors.Invalid([errors.Problem(path="starts", message=message)])
    if write.actor.kind not in ("person", "token") or write.actor.via == "command":
        raise errors.Refused(
            "A draft is scheduled in the dashboard or over HTTP: it is applied as that user."
        )
    user = users.row_of(write.actor.name)
    with writing.begin():
        draft = _to_try(key)
        trial = rows.begin(
            draft.key,
            "schedule",
            author=write.actor.name,
            via=write.actor.via,
            user=user.pk,
            token=token,
            confirmed=drafts.to_confirm(write, draft),
            starts=starts,
            ends=starts + LATEST,
        )
        drafts.keep_until(draft, starts + LATEST + _DECIDED_WITHIN)
        after = {"title": draft.title, "starts": grants.format_time(starts)}
        writing.record(write, "draft", str(draft.key), action="draft.schedule", before=None, after=after)
    return trial


def roll_out(
    write: writing.Write,
    key: uuid.UUID | str,
    *,
    percent: int = PERCENT,
    agents: Collection[str] = (),
    ends: dt.datetime | None = None,
    token: str = "",
) -> Trial:
    """Let a draft count from now on in so many percent of the sessions of the agents that it changes, or only of these
    ``agents``, until ``ends``: :data:`DAYS` by default. What has to be confirmed to apply it is confirmed now.

    The writer sent the ``token`` with this prefix, or none. Raise errors.Refused for a draft that cannot count in only
    some sessions, and if it is tried already, or a roll-out runs for one of the agents; and as :func:`drafts.apply`
    does if it could not be applied now.
    """
    now = clock.now()
    ends = _end(ends, now)
    if not 1 <= percent <= 100:
        problem = errors.Problem(path="percent", message=f"{percent} is not from 1 to 100 percent.")
        raise errors.Invalid([problem])
    if write.actor.kind not in ("person", "token"):
        raise errors.Refused("Only people roll out drafts.")
    # A login on the machine has no permissions that could be withdrawn.
    user = None if write.actor.via == "command" else users.row_of(write.actor.name).pk
    with writing.begin():
        draft = _to_try(key)
        changes = _for_some_sessions(draft, agents)
        for agent, other in rows.rolled_out(changes).items():
            raise errors.Refused(
                f"The draft {other.title!r} is rolled out for {agent} until {grants.format_time(other.ends)}: stop or"
                " apply that one first, because the sessions of two could not be compared."
            )
        trial = rows.begin(
            draft.key,
            "rollout",
            author=write.actor.name,
            via=write.actor.via,
            user=user,
            token=token,
            confirmed=drafts.to_confirm(write, draft),
            starts=now,
            ends=ends,
            mark=recorded_facts.newest_id(),
            percent=percent,
            changes=changes,
        )
        drafts.keep_until(draft, ends + _DECIDED_WITHIN)
        after = {"title": draft.title, "percent": percent, "agents": [*changes]}
        after["ends"] = grants.format_time(ends)
        writing.record(write, "draft", str(draft.key), action="draft.rollout", before=None, after=after)
    return trial


def compare(arms: rollouts.Arms) -> str:
    """Return in words how the sessions that have a roll-out do, compared with the others."""
    if arms.refused >= rollouts.MAX_REFUSED:
        return f"In {texts.counted(arms.refused, 'session')}, it refused calls that would not be refused without it."
    counts = (
        f"{arms.new.failed} of {texts.counted(arms.new.sessions, 'session')} with it had a refused or failed call"
        f" ({arms.new.percent} %), against {arms.old.failed} of {arms.old.sessions} without it ({arms.old.percent} %)"
    )
    if not arms.is_comparable:
        return f"{counts}. They are compared from {rollouts.MIN_SESSIONS} sessions of each on."
    if arms.is_worse:
        return f"{counts}: more than chance explains (z = {arms.score:.1f})."
    return f"{counts}. Chance may explain that: z = {arms.score:.1f}, and it is taken back at {rollouts.MIN_SCORE:.0f}."


def agents_of(draft: drafts.Draft) -> tuple[str, ...]:
    """Return the agents that a draft can be rolled out to; raise errors.Refused with what keeps it from that."""
    return tuple(_for_some_sessions(draft, ()))


def why(trial: Trial, may_read: Callable[[str], bool]) -> str:
    """Return the note of a trial, for who may read the kinds of entries that its draft changes: it may quote them, as
    :func:`drafts.differing` does. Others read where it is said.
    """
    return trial.note if not trial.note or all(map(may_read, trial.kinds)) else _HIDDEN


def stop(write: writing.Write, key: uuid.UUID | str) -> Trial:
    """Stop observing a draft or rolling it out, or do not apply it at its time; return the trial. What was counted
    stays. Raise errors.Refused if it is not tried.
    """
    with writing.begin():
        draft = _open(key)
        trial = _running(draft)
        rows.end(trial.pk, "stopped")
        before = {"title": draft.title, "mode": trial.mode}
        writing.record(write, "draft", str(draft.key), action="draft.stop", before=before, after=None)
    return trial


def report(trial: Trial) -> proofs.Proof:
    """Return what observing a draft has counted until now, as a proof."""
    merged: dict[tuple[str, ...], proofs.Row] = {}
    recent = (clock.now() - proofs.RECENT).date()
    for day in rows.days(trial.pk):
        place = (day.agent, day.tool, day.before, day.after, day.words)
        row = merged.get(place)
        if row is None:
            row = merged[place] = proofs.Row(
                day.agent,
                day.tool,
                cast("replay.Kind", day.before),
                cast("replay.Kind", day.after),
                day.words,
            )
        row.calls += day.calls
        row.ran += day.ran
        row.recent += day.ran if day.day >= recent else 0
        row.sessions.update(day.sessions)
        row.examples = [*day.examples, *row.examples][: rows.MAX_EXAMPLES]
        row.last = max(filter(None, (row.last, day.last)))
    return proofs.Proof(
        days=days_of(trial),
        since=trial.starts,
        calls=trial.calls,
        rows=proofs.in_order(merged.values()),
        unproven=trial.unproven,
        fields=trial.unknown,
        observed=True,
    )


def observed_rules(trial: Trial) -> dict[str, int]:
    """Return how many calls the observed gate rules would have decided in the time of a trial, by rule."""
    return recorded_facts.would_have_decided(recorded_facts.Window(trial.starts, trial.ends))


def days_of(trial: Trial) -> int:
    """Return for how many days a draft was observed, begun ones included."""
    until = min(clock.now(), trial.ends)
    return max(1, -(-(until - trial.starts) // dt.timedelta(days=1)))


def _for_some_sessions(draft: drafts.Draft, among: Collection[str]) -> Mapping[str, list[audit.Entry]]:
    """Return the changes of a draft by agent: of these agents, or of all that it changes."""
    changes: dict[str, list[audit.Entry]] = {}
    for change in draft.changes:
        if problem := _why_not(change):
            raise errors.Refused(problem)
        changes.setdefault(change.subject_key, []).append(change)
    if unknown := [agent for agent in among if agent not in changes]:
        message = f"This draft does not change {', '.join(unknown)}: choose among {', '.join(changes)}."
        raise errors.Invalid([errors.Problem(path="agents", message=message)])
    return {agent: of_agent for agent, of_agent in changes.items() if not among or agent in among}


def _why_not(change: audit.Entry) -> str:
    """Return why a change cannot count in only some sessions, and the way out; empty if it can."""
    if change.subject_kind == "loadout":
        return (
            f"The loadout {change.subject_key} is the same in all sessions: copy it under another name, and roll out a"
            " draft that gives the copy to the agents."
        )
    if change.subject_kind != "agent":
        word = change.subject_kind.replace("_", "-")
        return (
            f"The {word} {change.subject_key} is the same in all sessions of all agents: observe the draft, or apply"
            " it."
        )
    agent = change.subject_key
    if not change.key and None in (change.before, change.after):
        return f"An agent is there in all of its sessions or in none, and so is {agent}: apply the draft."
    if change.key:
        if any(grants.expiry_of(side) is not None for side in (change.before, change.after)):
            return (
                f"{change.key} of {agent} has an end of its own: apply the draft, or save it without an end."
            )
        return ""
    if not {*change.before, *change.after} <= rollouts.FIELDS or change.action.endswith(".order"):
        names = sorted({*change.before, *change.after} - rollouts.FIELDS)
        return f"{', '.join(names)} of {agent} is the same in all of its sessions: apply that part as its own draft."
    return ""


def _open(key: uuid.UUID | str) -> drafts.Draft:
    draft = drafts.find(key)
    drafts.refuse_closed(draft)
    return draft


def _to_try(key: uuid.UUID | str) -> drafts.Draft:
    draft = _open(key)
    trial = latest(draft.key)
    if trial is not None and trial.is_running:
        raise errors.Refused(f"This draft is {WORDS[trial.mode]} already: stop that first.")
    return draft


def _running(draft: drafts.Draft) -> Trial:
    trial = latest(draft.key)
    if trial is None or not trial.is_running:
        raise errors.Refused("This draft is neither observed, scheduled nor rolled out.")
    return trial


def _end(ends: dt.datetime | None, now: dt.datetime) -> dt.datetime:
    if ends is None:
        return now + dt.timedelta(days=DAYS)
    if ends.tzinfo is None or not now < ends <= now + dt.timedelta(days=MAX_DAYS):
        message = f"Choose an end in the next {MAX_DAYS} days, with its zone."
        raise errors.Invalid([errors.Problem(path="ends", message=message)])
    return ends
