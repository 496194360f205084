"""Approvals of calls as rows: each transition is one conditional UPDATE, so that of several only the first succeeds."""

from __future__ import annotations

import dataclasses
import datetime as dt
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib import auth
from django.db import models as orm
from django.db import transaction
from django.db.models import functions, signals

from toolbelt import models
from toolbelt.core import call_approvals
from toolbelt.core.call_approvals import Approval
from toolbelt.store import clock, operators, revisions

# Without letters and digits that look alike.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_KEY_LENGTH = 8
# How many rows one statement deletes, so that others can write in between.
DELETE_BATCH_SIZE = 1000

_COLUMNS = tuple(field.name for field in dataclasses.fields(Approval))
# Read as a list, kept as a tuple.
_LISTS = ("rules", "approved_by", "wanted")


def connect() -> None:
    """Withdraw what is open of every agent that is deleted, and what a user has approved who is deleted or gets another
    name, and has not begun to run: new ones of their names start without it.
    """
    signals.post_delete.connect(_agent_deleted, sender=models.Agent, dispatch_uid="toolbelt.call_approvals")
    users, uid = auth.get_user_model(), "toolbelt.call_approvals.users"
    signals.post_delete.connect(_user_deleted, sender=users, dispatch_uid=uid)
    signals.pre_save.connect(_user_saved, sender=users, dispatch_uid=uid)


def find(binding: str) -> Approval | None:
    """Return the open approval for this binding, also one that has expired; None if there is none."""
    return _first(models.Approval.objects.filter(binding=binding, state__in=call_approvals.OPEN))


def spent(key: str, binding: str) -> Approval | None:
    """Return the approval with this key if it is spent, and for this binding, and its call has not ended; else None."""
    return _first(models.Approval.objects.filter(key=key, binding=binding, state="spent"))


def running(digest: str) -> list[Approval]:
    """Return the spent approvals of this call that has not ended, whatever version, options and rules it had."""
    return [_value(row) for row in models.Approval.objects.filter(digest=digest, state="spent")]


def kept(again: str) -> Approval | None:
    """Return the approval that holds now for this call in any session; None if there is none."""
    rows = models.Approval.objects.filter(again=again, always__gt=clock.now())
    return next(iter(still_approved(map(_value, rows.order_by("-always")))), None)


def all_kept(agents: Collection[str] | None = None) -> list[Approval]:
    """Return the approvals that hold for further calls, the newest first: of these agents or of all."""
    rows = models.Approval.objects.filter(always__gt=clock.now())
    if agents is not None:
        rows = rows.filter(agent__in=agents)
    return still_approved(map(_value, rows.order_by("-id")))


def still_approved(approvals: Iterable[Approval]) -> list[Approval]:
    """Return those whose people may approve such calls now, too: in no more queries for many than for one person."""
    found = list(approvals)
    names = {name for approval in found for name in approval.approved_by}
    agents = operators.decidable_by(names) if names else {}
    groups = operators.groups_of(names) if names else {}

    def may_decide(name: str, agent: str) -> bool:
        among = agents.get(name, frozenset())
        return among is None or agent in among

    return [
        each
        for each in found
        if all(may_decide(name, each.agent) for name in each.approved_by)
        and not call_approvals.missing(each, each.approved_by, groups)
    ]


def has_its_people(approval: Approval) -> bool:
    """Return whether those who approved a call and may still do so are enough. Who approves with a command needs no
    account.
    """
    lost = operators.no_longer_deciding(approval.approved_by, approval.agent)
    left = [name for name in approval.approved_by if name not in lost]
    return not call_approvals.missing(approval, left, operators.groups_of(left))


def withdraw_again(key: str) -> None:
    """Withdraw what was approved by the approval with this key, and has not begun to run."""
    rows = models.Approval.objects.filter(always_of=key, state="approved")
    rows.update(state="withdrawn", version=orm.F("version") + 1)


def read(key: str) -> Approval | None:
    """Return the approval with this key; None if there is none."""
    return _first(models.Approval.objects.filter(key=key))


def add(approval: Approval, binding: str, digest: str, again: str = "") -> Approval | None:
    """Store a request, and return it with its key; withdraw those for the same call that were asked about otherwise,
    unless they were rejected: a rejection holds for its time.

    It is approved if an approval holds for the same call ``again``.

    Return the open one if there is one for this binding already, and None if too many are pending.
    """
    with transaction.atomic():
        # One after the other: so they are counted before the next one is added.
        revisions.lock()
        if (found := find(binding)) is not None:
            return found
        other = models.Approval.objects.filter(digest=digest, state__in=("pending", "approved"))
        other.update(state="withdrawn", version=orm.F("version") + 1)
        if (holding := kept(again) if again else None) is not None:
            approval = call_approvals.again(holding, approval)
        elif call_approvals.is_full(map(_value, _pending().filter(agent=approval.agent)), approval):
            return None
        added = dataclasses.replace(approval, key=_new_key())
        models.Approval.objects.create(**_row(added), binding=binding, digest=digest, again=again)
        return added


def move(before: Approval, after: Approval, **columns: Any) -> bool:
    """Store what was done to an approval, unless something else was done to it meanwhile. Return whether it was.

    ``columns`` are further columns to set.
    """
    changed = {name: value for name, value in _row(after).items() if value != _row(before)[name]}
    rows = models.Approval.objects.filter(key=before.key, state=before.state, version=before.version)
    return bool(rows.update(**changed, **columns))


def finish(outcome: str, **of: str) -> None:
    """Note how the call ended that spent an approval: the one with this ``key`` or ``call_id``."""
    rows = models.Approval.objects.filter(state="spent", **of)
    rows.update(state="done", outcome=outcome, version=orm.F("version") + 1)


def undecided(keys: Collection[str]) -> frozenset[str]:
    """Return which of these can still be decided. One query."""
    return frozenset(_pending().filter(key__in=keys).values_list("key", flat=True))


def listed(
    *,
    state: str = "",
    agents: Collection[str] | None = None,
    tool: str = "",
    since: dt.datetime | None = None,
    maximum: int = 100,
) -> list[Approval]:
    """Return approvals, the newest first: of these agents or of all, in this state now, asked since then."""
    rows = _in_state(state)
    if agents is not None:
        rows = rows.filter(agent__in=agents)
    if tool:
        rows = rows.filter(tool=tool)
    if since is not None:
        rows = rows.filter(asked__gte=since)
    return [_value(row) for row in rows.order_by("-id")[:maximum]]


def settled(agents: Collection[str] | None, maximum: int) -> list[Approval]:
    """Return those that need no decision any more, the newest first: of these agents or of all."""
    rows = models.Approval.objects.exclude(state="pending", expires__gt=clock.now())
    if agents is not None:
        rows = rows.filter(agent__in=agents)
    return [_value(row) for row in rows.order_by("-id")[:maximum]]


def befores(approvals: Collection[Approval]) -> Mapping[str, Approval]:
    """Return by the key of each the last one before it that people decided, of the same agent and tool, about which the
    same rules asked; none if there is none. Two queries.
    """
    same = {name: orm.OuterRef(name) for name in ("agent", "tool", "rules")}
    earlier = models.Approval.objects.filter(**same, decided__isnull=False, asked__lt=orm.OuterRef("asked"))
    asked = models.Approval.objects.filter(key__in=[approval.key for approval in approvals])
    asked = asked.annotate(earlier=orm.Subquery(earlier.order_by("-id").values("pk")[:1]))
    found = dict(asked.filter(earlier__isnull=False).values_list("key", "earlier"))
    rows = models.Approval.objects.in_bulk(set(found.values())) if found else {}
    return {key: _value(rows[earlier]) for key, earlier in found.items() if earlier in rows}


class Fate(NamedTuple):
    """What became of a request; ``decided`` is when it was approved or rejected."""

    asked: dt.datetime
    decided: dt.datetime | None
    is_rejected: bool
    is_over: bool


def fates(rule: str, since: dt.datetime) -> list[Fate]:
    """Return what became of the requests since then that this rule asked about."""
    now = clock.now()
    rows = models.Approval.objects.annotate(names=functions.Cast("rules", orm.TextField()))
    # Keys of rules are written in JSON as they are.
    rows = rows.filter(asked__gte=since, names__contains=f'"{rule}"', always_of="").order_by()
    values = rows.values_list("asked", "decided", "rejected_by", "state", "expires")
    return [
        Fate(
            asked=asked,
            decided=decided,
            is_rejected=bool(rejected_by),
            is_over=state == "expired" or (state in call_approvals.OPEN and expires <= now),
        )
        for asked, decided, rejected_by, state, expires in values
    ]


class Decision(NamedTuple):
    """What people decided about a request; ``by`` are those who approved it, or the one who rejected it."""

    by: tuple[str, ...]
    is_rejected: bool
    asked: dt.datetime
    decided: dt.datetime


def decisions(since: dt.datetime, agents: Collection[str] | None = None) -> list[Decision]:
    """Return what people decided since then, about calls of these agents or of all."""
    rows = models.Approval.objects.filter(decided__gte=since)
    if agents is not None:
        rows = rows.filter(agent__in=agents)
    found = rows.order_by().values_list("approved_by", "rejected_by", "asked", "decided")
    return [
        Decision(
            by=(rejected_by,) if rejected_by else tuple(approved_by),
            is_rejected=bool(rejected_by),
            asked=asked,
            decided=decided,
        )
        for approved_by, rejected_by, asked, decided in found
        if decided is not None
    ]


def counts(agents: Collection[str] | None = None) -> Mapping[str, int]:
    """Return how many are pending by agent, of these agents or of all. One query."""
    rows = _pending() if agents is None else _pending().filter(agent__in=agents)
    return dict(rows.values_list("agent").order_by("agent").annotate(count=orm.Count("pk")))


def prune(before: dt.datetime) -> int:
    """Delete those that were asked before this time and are not open; return their number."""
    now, deleted = clock.now(), 0
    old = models.Approval.objects.filter(asked__lt=before).exclude(
        orm.Q(state__in=call_approvals.OPEN, expires__gt=now) | orm.Q(always__gt=now, always__isnull=False)
    )
    while keys := list(old.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]):
        deleted += models.Approval.objects.filter(pk__in=keys).delete()[0]
    return deleted


def _pending() -> orm.QuerySet[models.Approval]:
    return models.Approval.objects.filter(state="pending", expires__gt=clock.now())


def _in_state(state: str) -> orm.QuerySet[models.Approval]:
    """Return the rows in this state now, or all; what is past its time is expired."""
    rows, now = models.Approval.objects.all(), clock.now()
    if state in call_approvals.OPEN:
        return rows.filter(state=state, expires__gt=now)
    if state == "expired":
        is_over = orm.Q(state__in=call_approvals.OPEN, expires__lte=now)
        return rows.filter(orm.Q(state="expired") | is_over)
    return rows.filter(state=state) if state else rows


def _first(rows: orm.QuerySet[models.Approval]) -> Approval | None:
    row = rows.first()
    return None if row is None else _value(row)


def _value(row: models.Approval) -> Approval:
    fields = {name: getattr(row, name) for name in _COLUMNS}
    return Approval(**{**fields, **{name: tuple(fields[name]) for name in _LISTS}})


def _row(approval: Approval) -> dict[str, Any]:
    fields = {name: getattr(approval, name) for name in _COLUMNS}
    return {**fields, **{name: list(fields[name]) for name in _LISTS}}


def _new_key() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_KEY_LENGTH))


def _agent_deleted(instance: models.Agent, **_: Any) -> None:
    models.Approval.objects.filter(agent=instance.key, always__isnull=False).update(always=None)
    rows = models.Approval.objects.filter(agent=instance.key, state__in=call_approvals.OPEN)
    rows.update(state="withdrawn", version=orm.F("version") + 1)


def _user_deleted(instance: Any, **_: Any) -> None:
    _forget(instance.get_username())


def _user_saved(instance: Any, update_fields: Collection[str] | None, **_: Any) -> None:
    field = instance.USERNAME_FIELD
    if instance.pk is None or (update_fields is not None and field not in update_fields):
        return
    stored = type(instance)._default_manager.filter(pk=instance.pk).values_list(field, flat=True).first()
    if stored not in (None, instance.get_username()):
        _forget(stored)


def _forget(name: str) -> None:
    """End what the user of this name has approved and has not begun to run."""
    rows = models.Approval.objects.all()
    kept, open_ = rows.filter(always__isnull=False), rows.filter(state="approved")
    kept.filter(pk__in=_approved_by(name, kept)).update(always=None)
    open_.filter(pk__in=_approved_by(name, open_)).update(state="withdrawn", version=orm.F("version") + 1)
    for row in models.Approval.objects.filter(state="pending"):
        if name in row.approved_by:
            others = [each for each in row.approved_by if each != name]
            models.Approval.objects.filter(pk=row.pk, state="pending", version=row.version).update(
                approved_by=others, version=row.version + 1
            )


def _approved_by(name: str, rows: orm.QuerySet[models.Approval]) -> list[int]:
    return [key for key, names in rows.values_list("pk", "approved_by") if name in names]
