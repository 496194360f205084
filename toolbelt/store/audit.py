"""Reading the audit log (:mod:`toolbelt.store.audit_writing` writes it)."""

from __future__ import annotations

import bisect
import dataclasses
import datetime as dt
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack, cast

from django.db import models as orm

from toolbelt import models
from toolbelt.core import belts, facts

# How many entries are read at a time.
_BATCH_SIZE = 200
# How many changes are searched for the author of a field's value.
_RECENT = 50
# The most changes among which the authors of what conversations were told are found.
MAX_ACTS = 1000
# The actions of which a batch may have hundreds, one for each tool, with nothing to tell apart but the tool.
FOLDED = ("tool.approve", "tool.reject", "tool.appear", "tool.disappear", "tool.return")
# The lookups of filters whose name is not a column.
_LOOKUPS = {"since": "at__gte", "until": "at__lt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """The entry that undid another one: its id, its actor, its time."""

    id: int
    actor: str
    at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change. ``before`` and ``after`` are JSON values; None: unset, or missing. Secrets in options are withheld.

    ``undoes`` is the id of the entry that this one undid; ``undone`` the latest one that undid this one.
    ``of_several``: its ``batch`` has other entries as well. ``asked_by`` is who asked for an observation.
    ``members`` are the subjects of the entries that this one stands for (see :func:`page`); none if only for itself.
    ``revision`` is the number of the last write, including this change; None in entries that are older than the column.
    ``unlogged`` is what was written without the log before it (see :func:`toolbelt.store.revisions.find_unlogged`).
    """

    id: int
    at: dt.datetime
    actor: str
    via: str
    action: str
    subject_kind: str
    subject_key: str
    key: str
    before: Any
    after: Any
    reason: str
    batch: uuid.UUID | None
    undoes: int | None
    undone: Undoing | None
    of_several: bool = False
    actor_kind: facts.ActorKind = "person"
    asked_by: str = ""
    members: tuple[str, ...] = ()
    revision: int | None = None
    unlogged: Mapping[str, Any] | None = None

    @property
    def is_fact(self) -> bool:
        """Return whether it records what was observed, so that it cannot be undone."""
        return facts.is_fact(
            self.action, self.before, self.after, reason=self.reason, is_undo=self.undoes is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Entries, newest first; the number of all matches; whether there are newer and older ones."""

    entries: tuple[Entry, ...]
    total: int
    has_newer: bool
    has_older: bool


class AuditFilters(TypedDict, total=False):
    """Filters of entries: all of them must match, and empty ones are ignored. ``since`` is inclusive, ``until``
    exclusive.

    ``about`` is the name of what an entry is about, as its subject or as the key of a switch or override: of anything,
    or only of something of the kind ``about_kind``. What a server or program showed is about its plugin, too.
    """

    actor: str
    actor_kind: str | tuple[str, ...]
    about: str
    about_kind: str
    key: str
    action: str
    via: str
    batch: uuid.UUID | None
    since: dt.datetime | None
    until: dt.datetime | None


class AuditQuery(AuditFilters, total=False):
    """The filters, and what the entries are about."""

    subject_kind: str
    subject_key: str


def find(entry: int) -> Entry | None:
    """Return the entry with this id, or None."""
    return next(iter(_entries(models.AuditEntry.objects.filter(pk=entry))), None)


def page(
    *,
    older_than: int | None = None,
    newer_than: int | None = None,
    size: int = 50,
    folded: bool = False,
    **filters: Unpack[AuditQuery],
) -> Page:
    """Return a page of the entries that match, newest first: the first page, or the one next to the entry with the id
    ``older_than`` or ``newer_than``.

    If ``folded``, the newest approval of a batch stands for all of them that match, and so does the newest rejection,
    new tool, and so on: they count as one.
    """
    matching = _matching(filters)
    found = _page(_folded(matching) if folded else matching, older_than, newer_than, size)
    if folded:
        found = dataclasses.replace(found, entries=_with_members(found.entries, matching))
    return found


def _page(
    matching: orm.QuerySet[models.AuditEntry], older_than: int | None, newer_than: int | None, size: int
) -> Page:
    if newer_than is not None:
        # The adjacent ones are those with the lowest ids.
        entries = _entries(matching.filter(pk__gt=newer_than).order_by("id")[:size])[::-1]
    elif older_than is not None:
        entries = _entries(matching.filter(pk__lt=older_than).order_by("-id")[:size])
    else:
        # There is nothing newer, and the count tells whether there is anything older: two queries less. A page that is
        # not full has all.
        entries = _entries(matching.order_by("-id")[:size])
        total = len(entries) if len(entries) < size else matching.count()
        return Page(entries=entries, total=total, has_newer=False, has_older=total > size)
    return Page(
        entries=entries,
        total=matching.count(),
        has_newer=bool(entries) and matching.filter(pk__gt=entries[0].id).exists(),
        has_older=bool(entries) and matching.filter(pk__lt=entries[-1].id).exists(),
    )


def last() -> Entry | None:
    """Return the newest entry of all."""
    return next(iter(_entries(_matching({}).order_by("-id")[:1])), None)


def iterate(**filters: Unpack[AuditQuery]) -> Iterator[tuple[Entry, ...]]:
    """Yield all entries that :func:`page` would return on its pages, newest first, a few hundred at a time."""
    matching = _matching(filters).order_by("-id")
    batch = _entries(matching[:_BATCH_SIZE])
    while batch:
        yield batch
        batch = (
            _entries(matching.filter(pk__lt=batch[-1].id)[:_BATCH_SIZE]) if len(batch) == _BATCH_SIZE else ()
        )


def of_batch(batch: uuid.UUID) -> tuple[Entry, ...]:
    """Return all entries of one batch, newest first."""
    return _entries(models.AuditEntry.objects.filter(batch=batch).order_by("-id"))


def since(entry: int, subject_kind: str, subject_key: str) -> list[tuple[str, str, Any, Any]]:
    """Return the changes of a subject after the entry with this id (0: all), newest first: action, key, before and
    after of each.
    """
    rows = models.AuditEntry.objects.filter(subject_kind=subject_kind, subject_key=subject_key, pk__gt=entry)
    return [
        (action, key, belts.withheld(before), belts.withheld(after))
        for action, key, before, after in rows.order_by("-id").values_list("action", "key", "before", "after")
    ]


def newest_first(until: int, since: int = 0) -> Iterator[tuple[int, belts.LoggedChange]]:
    """Yield the id and the change of each entry up to the one with the id ``until``, the newest first; only those after
    the one with the id ``since``.
    """
    rows = models.AuditEntry.objects.filter(pk__lte=until, pk__gt=since).order_by("-id")
    names = ("id", "action", "subject_kind", "subject_key", "key", "before", "after", "unlogged")
    for number, action, kind, name, key, before, after_change, unlogged in rows.values_list(
        *names
    ).iterator():
        yield (
            number,
            belts.LoggedChange(
                action=action,
                kind=kind,
                name=name,
                key=key,
                before=belts.withheld(before),
                after=belts.withheld(after_change),
                unlogged=unlogged,
            ),
        )


def last_before(moment: dt.datetime) -> int:
    """Return the id of the last entry before the first one that was made after this moment; 0 if there is none.

    What has ended is recorded later than its time, so it says nothing about what was recorded before it.
    """
    later = models.AuditEntry.objects.filter(at__gt=moment).exclude(action__endswith=".end")
    first = later.order_by("id").values_list("id", flat=True).first()
    rows = (
        models.AuditEntry.objects.all() if first is None else models.AuditEntry.objects.filter(pk__lt=first)
    )
    return rows.order_by("-id").values_list("id", flat=True).first() or 0


def last_by_revision() -> Callable[[int], int]:
    """Return a function that returns the id of the last entry that was in force at a revision; 0 if there is none. One
    query, however often that is called.
    """
    rows = models.AuditEntry.objects.filter(revision__isnull=False).order_by("id")
    pairs = list(rows.values_list("pk", "revision"))

    def last(revision: int) -> int:
        index = bisect.bisect_right(pairs, revision, key=lambda pair: pair[1] or 0)
        if index < len(pairs):
            return pairs[index][0] - 1
        return pairs[-1][0] if pairs else 0

    return last


def logged_after(entry: int) -> list[belts.LoggedChange]:
    """Return the changes after the entry with this id, oldest first."""
    return [change for _, change in newest_first(newest_id(), since=entry)][::-1]


def newest_until(entry: int, subject_kind: str, subject_key: str) -> Entry | None:
    """Return the newest entry of a subject among those up to the one with this id."""
    rows = models.AuditEntry.objects.filter(subject_kind=subject_kind, subject_key=subject_key, pk__lte=entry)
    return next(iter(_entries(rows.order_by("-id")[:1])), None)


def changes_since(entry: int, subjects: Mapping[str, Collection[str]]) -> tuple[Entry, ...]:
    """Return the changes of these subjects (names by kind) after the entry with this id, oldest first."""
    any_subject = orm.Q(pk__in=())
    for kind, names in subjects.items():
        any_subject |= orm.Q(subject_kind=kind, subject_key__in=names)
    return _entries(models.AuditEntry.objects.filter(any_subject, pk__gt=entry).order_by("id"))


def after(entry: int) -> tuple[Entry, ...]:
    """Return everything after the entry with this id, oldest first."""
    return _entries(models.AuditEntry.objects.filter(pk__gt=entry).order_by("id"))


def approved_since(entry: int) -> frozenset[str]:
    """Return the tools of which a version was approved after the entry with this id."""
    rows = models.AuditEntry.objects.filter(action="tool.approve", pk__gt=entry)
    return frozenset(rows.order_by().values_list("subject_key", flat=True).distinct())


def newest_id() -> int:
    """Return the id of the newest entry; 0 if there is none."""
    return models.AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0


def last_author(
    subject_kind: str, subject_key: str, key: str = "", fields: Collection[str] = ()
) -> tuple[str, facts.ActorKind] | None:
    """Return the actor, and its kind, of the newest change of a subject, or only of this toolkit or tool of it, or of
    any of these fields. What is empty does not matter.
    """
    rows = models.AuditEntry.objects.order_by("-id")
    named = {"subject_kind": subject_kind, "subject_key": subject_key, "key": key}
    rows = rows.filter(**{name: value for name, value in named.items() if value})
    for row in rows[:_RECENT]:
        changed = {name for side in (row.before, row.after) if isinstance(side, Mapping) for name in side}
        if not fields or not set(fields).isdisjoint(changed):
            return row.actor, cast("facts.ActorKind", row.actor_kind)
    return None


def newest(subject_kind: str, subject_keys: Collection[str]) -> dict[str, Entry]:
    """Return the newest entry of each of these subjects, by the subject's key."""
    rows = models.AuditEntry.objects.filter(subject_kind=subject_kind, subject_key__in=subject_keys)
    return {entry.subject_key: entry for entry in _newest_by("subject_key", rows)}


def newest_of_value(
    subjects: Iterable[tuple[str, str]], field: str, value: object
) -> dict[tuple[str, str], Entry]:
    """Return the newest entry that set a field of each of these subjects (kind and key) to this value."""
    by_kind: dict[str, list[str]] = {}
    for kind, key in subjects:
        by_kind.setdefault(kind, []).append(key)
    any_subject = orm.Q(pk__in=())
    for kind, keys in by_kind.items():
        any_subject |= orm.Q(subject_kind=kind, subject_key__in=keys)
    rows = models.AuditEntry.objects.filter(any_subject, **{f"after__{field}": value})
    newest = rows.order_by().values("subject_kind", "subject_key").annotate(newest=orm.Max("id"))
    entries = _entries(models.AuditEntry.objects.filter(pk__in=newest.values("newest")))
    return {(entry.subject_kind, entry.subject_key): entry for entry in entries}


def newest_by_key(subject_kind: str, subject_key: str) -> dict[str, Entry]:
    """Return the newest entry of each toolkit and tool under a subject, by its key."""
    rows = models.AuditEntry.objects.filter(subject_kind=subject_kind, subject_key=subject_key)
    return {entry.key: entry for entry in _newest_by("key", rows.exclude(key=""))}


def logged_values(field: str, subject_kind: str = "", subject_key: str = "") -> list[str]:
    """Return the values of a column, such as ``actor`` or ``via``, in the entries of one subject or of all, to filter
    by.
    """
    rows = models.AuditEntry.objects.all()
    if subject_kind:
        rows = rows.filter(subject_kind=subject_kind, subject_key=subject_key)
    return [*rows.order_by(field).values_list(field, flat=True).distinct()]


def _matching(filters: AuditQuery) -> orm.QuerySet[models.AuditEntry]:
    about, about_kind = filters.get("about", ""), filters.get("about_kind", "")
    columns = {
        name: value for name, value in filters.items() if value and name not in ("about", "about_kind")
    }
    return models.AuditEntry.objects.filter(
        _about(about, about_kind) if about or about_kind else orm.Q(),
        **{
            f"{name}__in" if isinstance(value, tuple) else _LOOKUPS.get(name, name): value
            for name, value in columns.items()
        },
    )


def _about(name: str, kind: str) -> orm.Q:
    """Return the condition that an entry is about something of this kind with this name; empty: of any kind, or with
    any name.
    """
    subject = orm.Q(subject_key=name) if name else orm.Q()
    key = orm.Q(key=name) if name else orm.Q()
    source = orm.Q(actor_kind__in=("server", "program")) & (orm.Q(actor=name) if name else orm.Q())
    if not kind:
        return subject | key | source
    subject &= orm.Q(subject_kind=kind)
    match kind:
        case "tool":
            return subject | (key & orm.Q(action__startswith="override."))
        case "toolkit":
            return subject | (key & orm.Q(action__startswith="switch."))
        case "plugin":
            return subject | source
    return subject


def _folded(matching: orm.QuerySet[models.AuditEntry]) -> orm.QuerySet[models.AuditEntry]:
    """Return the entries without those for which a newer one of their batch stands."""
    same = {name: orm.OuterRef(name) for name in ("batch", "action", "actor")}
    newer = matching.filter(pk__gt=orm.OuterRef("pk"), **same)
    return matching.exclude(orm.Q(action__in=FOLDED) & orm.Q(orm.Exists(newer)))


def _with_members(entries: tuple[Entry, ...], matching: orm.QuerySet[models.AuditEntry]) -> tuple[Entry, ...]:
    """Return the entries with what each stands for. If only some of that was undone, the rest can still be undone."""
    batches = {entry.batch for entry in entries if entry.action in FOLDED and entry.of_several}
    if not batches:
        return entries
    rows = matching.filter(batch__in=batches, action__in=FOLDED).order_by("id")
    members: dict[tuple[uuid.UUID | None, str, str], dict[int, str]] = {}
    for row in rows.only("batch", "action", "actor", "subject_key"):
        members.setdefault((row.batch, row.action, row.actor), {})[row.pk] = row.subject_key
    undone = _undone(number for stands_for in members.values() for number in stands_for)
    result = []
    for entry in entries:
        group = members.get((entry.batch, entry.action, entry.actor), {})
        if len(group) > 1:
            undoings = [undone.get(number) for number in group]
            entry = dataclasses.replace(
                entry,
                members=tuple(group.values()),
                undone=undoings[-1] if None not in undoings else None,
            )
        result.append(entry)
    return tuple(result)


def _newest_by(field: str, rows: orm.QuerySet[models.AuditEntry]) -> tuple[Entry, ...]:
    newest = rows.order_by().values(field).annotate(newest=orm.Max("id")).values("newest")
    return _entries(models.AuditEntry.objects.filter(pk__in=newest))


def _entries(rows: orm.QuerySet[models.AuditEntry]) -> tuple[Entry, ...]:
    others = models.AuditEntry.objects.filter(batch=orm.OuterRef("batch")).exclude(pk=orm.OuterRef("pk"))
    matching = list(rows.annotate(of_several=orm.Exists(others)))
    undone = _undone(row.pk for row in matching)
    return tuple(
        Entry(
            id=row.pk,
            at=row.at,
            actor=row.actor,
            via=row.via,
            action=row.action,
            subject_kind=row.subject_kind,
            subject_key=row.subject_key,
            key=row.key,
            before=belts.withheld(row.before),
            after=belts.withheld(row.after),
            reason=row.reason,
            batch=row.batch,
            undoes=row.undoes_id,
            undone=undone.get(row.pk),
            of_several=row.of_several,
            actor_kind=cast("facts.ActorKind", row.actor_kind),
            asked_by=row.asked_by,
            revision=row.revision,
            unlogged=row.unlogged,
        )
        for row in matching
    )


def _undone(entries: Iterable[int]) -> Mapping[int, Undoing]:
    rows = models.AuditEntry.objects.filter(undoes__in=list(entries)).order_by("id")
    return {row.undoes_id: Undoing(id=row.pk, actor=row.actor, at=row.at) for row in rows if row.undoes_id}


class Act(NamedTuple):
    """When something was changed, what, and by whom."""

    at: dt.datetime
    actor: str
    kind: str
    subject: str
    key: str


def actors_between(first: dt.datetime, last: dt.datetime) -> list[Act]:
    """Return the changes of this time, the newest first, at most :data:`MAX_ACTS`."""
    rows = models.AuditEntry.objects.filter(at__gte=first, at__lte=last).order_by("-at")
    names = ("at", "actor", "subject_kind", "subject_key", "key")
    return [Act(*values) for values in rows.values_list(*names)[:MAX_ACTS]]
