"""Trials of drafts, as values and rows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents, replay, rollouts
from toolbelt.store import audit, call_records

Mode = Literal["observe", "schedule", "rollout"]
State = Literal["running", "ended", "stopped", "applied", "failed", "reverted"]
# What a roll-out keeps of each change of its agent.
_CHANGED = ("action", "key", "before", "after")
# How many sessions of a day's calls are told apart, and how many calls are named.
MAX_SESSIONS, MAX_EXAMPLES = 10_000, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A draft that is observed from ``starts`` to ``ends``, applied at ``starts``, and until ``ends`` at the latest, or
    rolled out from ``starts`` to ``ends``: to so many ``percent`` of the sessions of these ``agents``.

    ``author`` began it through the interface ``via``; unless it is observed, as that user, whose primary key is
    ``user`` (None: by a command), and only while the ``token`` with this prefix is valid, if it was begun with one.
    ``confirmed`` are the reasons that were confirmed then. ``note`` is why it stopped, failed or was reverted, and
    ``mark`` the id of the newest call that was counted; of a roll-out, of the newest one before it. ``calls`` are all
    that the draft could concern; ``unproven`` and ``unknown`` are as in a proof. ``arms`` are those of a roll-out, as
    they were counted last, up to the call ``until``. ``kinds`` are those of the entries that the draft changes.
    """

    pk: int
    draft: uuid.UUID
    title: str
    kinds: frozenset[str]
    mode: Mode
    author: str
    via: str
    user: int | None
    token: str
    confirmed: tuple[str, ...]
    starts: dt.datetime
    ends: dt.datetime
    percent: int
    agents: tuple[str, ...]
    state: State
    note: str
    mark: int
    calls: int
    unproven: Mapping[replay.Reason, int]
    unknown: Mapping[str, Collection[str]]
    arms: rollouts.Arms
    until: int

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self.state == "running"

    @property
    def was_stopped(self) -> bool:
        """Return whether a person stopped it."""
        return self.state == "stopped" and not self.note


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The calls of a day that would have gone otherwise, of one tool by one agent, for one reason."""

    day: dt.date
    agent: str
    tool: str
    before: str
    after: str
    words: str
    calls: int
    ran: int
    sessions: Collection[str]
    examples: Collection[int]
    last: dt.datetime


def begin(
    draft: uuid.UUID,
    mode: Mode,
    *,
    author: str,
    via: str,
    starts: dt.datetime,
    ends: dt.datetime,
    user: int | None = None,
    token: str = "",
    confirmed: Sequence[str] = (),
    mark: int = 0,
    percent: int = 0,
    changes: Mapping[str, Sequence[audit.Entry]] | None = None,
) -> Trial:
    """Store a trial that runs. The ``changes`` of a roll-out, by agent, count at once, and until it ends."""
    changes = changes or {}
    row = models.Trial.objects.create(
        draft_id=draft,
        mode=mode,
        author=author,
        via=via,
        user=user,
        token=token,
        confirmed=list(confirmed),
        starts=starts,
        ends=ends,
        mark=mark,
        percent=percent or None,
        agents=[*changes],
    )
    ids = dict(models.Agent.objects.filter(key__in=changes).values_list("key", "pk"))
    models.Rollout.objects.bulk_create(
        models.Rollout(
            agent_id=ids[agent],
            trial=row,
            percent=percent,
            changes=[{name: getattr(change, name) for name in _CHANGED} for change in of_agent],
        )
        for agent, of_agent in changes.items()
    )
    return _value(row)


def rolled_out(among: Collection[str]) -> dict[str, Trial]:
    """Return the roll-outs that run for these agents, by agent."""
    rows = models.Rollout.objects.filter(agent__key__in=among).select_related("agent", "trial__draft")
    return {row.agent.key: _value(row.trial) for row in rows.order_by("agent__key")}


def latest(draft: uuid.UUID) -> Trial | None:
    """Return the last trial of a draft."""
    return latest_of([draft]).get(draft)


def latest_of(drafts: Collection[uuid.UUID]) -> dict[uuid.UUID, Trial]:
    """Return the last trial of each of these drafts that has one."""
    rows = models.Trial.objects.filter(draft__in=drafts).select_related("draft").order_by("id")
    return {row.draft_id: _value(row) for row in rows}


def find(pk: int) -> Trial | None:
    """Return a trial, locked until the transaction ends."""
    row = models.Trial.objects.filter(pk=pk).select_for_update(of=("self",)).select_related("draft").first()
    return None if row is None else _value(row)


def numbered(pk: int) -> Trial | None:
    """Return a trial, as it is stored now."""
    row = models.Trial.objects.filter(pk=pk).select_related("draft").first()
    return None if row is None else _value(row)


def running(drafts: Collection[uuid.UUID] | None = None) -> list[Trial]:
    """Return the trials that run: of these drafts, or all."""
    rows = models.Trial.objects.filter(state="running").select_related("draft").order_by("id")
    return [_value(row) for row in (rows if drafts is None else rows.filter(draft__in=drafts))]


def undecided() -> list[Trial]:
    """Return the last trials of drafts that are not applied, if they are over; a person who stopped one has decided."""
    rows = models.Trial.objects.filter(draft__applied=None).select_related("draft").order_by("id")
    last = {row.draft_id: _value(row) for row in rows}
    return [trial for trial in last.values() if not (trial.is_running or trial.was_stopped)]


def move_end(pk: int, ends: dt.datetime) -> None:
    """Store another end."""
    models.Trial.objects.filter(pk=pk).update(ends=ends)


def end(pk: int, state: State, note: str = "") -> None:
    """Store that a trial has ended, and why; what is rolled out no longer counts."""
    models.Trial.objects.filter(pk=pk, state="running").update(state=state, note=note)
    models.Rollout.objects.filter(trial=pk).delete()


def add(
    trial: Trial,
    *,
    mark: int,
    calls: int,
    unproven: Mapping[replay.Reason, int],
    unknown: Mapping[str, Collection[str]],
    days: Collection[Day],
) -> None:
    """Add what was counted since the mark, in the transaction of the caller."""
    names = {tool: {*found} for tool, found in trial.unknown.items()}
    for tool, found in unknown.items():
        names.setdefault(tool, set()).update(found)
    models.Trial.objects.filter(pk=trial.pk).update(
        mark=mark,
        calls=trial.calls + calls,
        unproven=dict(Counter(trial.unproven) + Counter(unproven)),
        unknown={tool: sorted(found) for tool, found in sorted(names.items())},
    )
    for day in days:
        _add_day(trial.pk, day)


def count_sessions(trial: Trial) -> tuple[rollouts.Arm, rollouts.Arm]:
    """Return the sessions of the new arm of a roll-out, and of the old one, since it began."""
    rows = models.CallRecord.objects.filter(pk__gt=trial.mark, at__gte=trial.starts, at__lt=trial.ends)
    failed = orm.Count("pk", filter=~orm.Q(outcome__in=call_records.NO_ERROR))
    groups = rows.filter(agent__in=trial.agents, session__gt="").order_by().values_list("agent", "session")
    rollout = agents.Rollout(trial=trial.pk, percent=trial.percent, changes="[]")
    arms = {True: [0, 0], False: [0, 0]}
    for agent, session, failures in groups.annotate(failures=failed):
        arm = arms[rollouts.includes(rollout, agent, session)]
        arm[0] += 1
        arm[1] += bool(failures)
    return rollouts.Arm(*arms[True]), rollouts.Arm(*arms[False])


def set_arms(pk: int, arms: rollouts.Arms, until: int) -> None:
    """Store what was counted in the arms of a roll-out that runs, up to the call ``until``."""
    document = {"new": arms.new, "old": arms.old, "refused": arms.refused, "until": until}
    models.Trial.objects.filter(pk=pk, state="running").update(arms=document)


def days(pk: int) -> list[Day]:
    """Return what was counted, by day."""
    rows = models.TrialDay.objects.filter(trial=pk).order_by("day", "id")
    return [
        Day(
            day=row.day,
            agent=row.agent,
            tool=row.tool,
            before=row.before,
            after=row.after,
            words=row.words,
            calls=row.calls,
            ran=row.ran,
            sessions=row.sessions,
            examples=row.examples,
            last=row.last,
        )
        for row in rows
    ]


def _add_day(trial: int, day: Day) -> None:
    place = {name: getattr(day, name) for name in ("day", "agent", "tool", "before", "after", "words")}
    row = models.TrialDay.objects.filter(trial=trial, **place).first()
    if row is None:
        row = models.TrialDay(trial_id=trial, last=day.last, **place)
    row.calls += day.calls
    row.ran += day.ran
    row.sessions = sorted({*row.sessions, *day.sessions})[:MAX_SESSIONS]
    row.examples = sorted({*row.examples, *day.examples}, reverse=True)[:MAX_EXAMPLES]
    row.last = max(row.last, day.last)
    row.save()


def _value(row: models.Trial) -> Trial:
    return Trial(
        pk=row.pk,
        draft=row.draft_id,
        title=row.draft.title,
        kinds=frozenset(change["subject_kind"] for change in row.draft.changes),
        mode=cast("Mode", row.mode),
        author=row.author,
        via=row.via,
        user=row.user,
        token=row.token,
        confirmed=tuple(row.confirmed),
        starts=row.starts,
        ends=row.ends,
        percent=row.percent or 0,
        agents=tuple(row.agents),
        state=cast("State", row.state),
        note=row.note,
        mark=row.mark,
        calls=row.calls,
        unproven=row.unproven,
        unknown=row.unknown,
        arms=rollouts.Arms(
            rollouts.Arm(*row.arms.get("new", ())),
            rollouts.Arm(*row.arms.get("old", ())),
            row.arms.get("refused", 0),
        ),
        until=row.arms.get("until", row.mark),
    )
