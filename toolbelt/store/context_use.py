"""Context use: sums of tokens by agent and day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import models as orm
from django.db import transaction
from django.db.models import signals

from toolbelt import models
from toolbelt.store import clock

# The age at which sums are deleted.
MAX_AGE = dt.timedelta(days=400)


class Use(NamedTuple):
    """The tokens that an agent was sent on one day, and those of the same answers with every allowed tool.

    ``answers`` counts surfaces and lists only.
    """

    agent: str
    day: dt.date
    answers: int
    sent: int
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sums of some agents and days."""

    answers: int
    sent: int
    allowed: int


def connect() -> None:
    """Delete the sums of every agent that is deleted, by any write: a new agent of its name starts without them."""
    signals.post_delete.connect(_agent_deleted, sender=models.Agent, dispatch_uid="toolbelt.context_use")


def add_all(uses: Iterable[Use]) -> None:
    """Add to the sums, in one transaction, and delete those that are too old."""
    sums: dict[tuple[str, dt.date], list[int]] = {}
    for use in uses:
        total = sums.setdefault((use.agent, use.day), [0, 0, 0])
        for index, count in enumerate(use[2:]):
            total[index] += count
    with transaction.atomic():
        # In order, so that two processes do not wait for each other's rows.
        for (agent, day), (answers, sent, allowed) in sorted(sums.items()):
            row, is_new = models.ContextUse.objects.get_or_create(
                agent=agent, day=day, defaults={"answers": answers, "sent": sent, "allowed": allowed}
            )
            if is_new:
                models.ContextUse.objects.filter(day__lt=clock.now().date() - MAX_AGE).delete()
            else:
                models.ContextUse.objects.filter(pk=row.pk).update(
                    answers=orm.F("answers") + answers,
                    sent=orm.F("sent") + sent,
                    allowed=orm.F("allowed") + allowed,
                )


def total(*, since: dt.date, agent: str = "") -> Total:
    """Return the sums since this day, of one agent or of all."""
    rows = models.ContextUse.objects.filter(day__gte=since, **({"agent": agent} if agent else {}))
    sums = rows.aggregate(*(orm.Sum(name, default=0) for name in ("answers", "sent", "allowed")))
    return Total(answers=sums["answers__sum"], sent=sums["sent__sum"], allowed=sums["allowed__sum"])


def by_agent(*, since: dt.date) -> dict[str, Total]:
    """Return the sums of each agent since this day, by key; agents without any are missing."""
    rows = models.ContextUse.objects.filter(day__gte=since).order_by().values("agent")
    sums = rows.annotate(
        answers__sum=orm.Sum("answers"), sent__sum=orm.Sum("sent"), allowed__sum=orm.Sum("allowed")
    )
    return {
        row["agent"]: Total(answers=row["answers__sum"], sent=row["sent__sum"], allowed=row["allowed__sum"])
        for row in sums
    }


def by_day(*, since: dt.date, agent: str) -> list[Use]:
    """Return the sums of an agent for each day since this one, in order."""
    rows = models.ContextUse.objects.filter(day__gte=since, agent=agent).order_by("day")
    return [Use(row.agent, row.day, row.answers, row.sent, row.allowed) for row in rows]


def _agent_deleted(instance: models.Agent, **kwargs: Any) -> None:
    models.ContextUse.objects.filter(agent=instance.key).delete()
