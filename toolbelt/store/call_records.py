"""Records of calls: added in bulk, completed once by a report, and pruned by age.

A record that says ``admitted`` counts as :data:`UNREPORTED` after its deadline. That is decided when it is read, so
nothing has to watch for deadlines, and a late report still completes the record.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack

from django.db import connections, router, transaction
from django.db import models as orm
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from toolbelt import models
from toolbelt.core import outcomes

ADMITTED, UNREPORTED = outcomes.ADMITTED, outcomes.UNREPORTED
# Outcomes that are not errors, and the filter value that selects all other outcomes.
NO_ERROR, ERROR = ("ok", "cancelled", "approval-pending", ADMITTED), "error"

# How many records one statement deletes, so that others can write in between.
DELETE_BATCH_SIZE = 5000
# How many records one query reads, where all records are read.
READ_BATCH_SIZE = 500

_COLUMNS = {field.name: field for field in models.CallRecord._meta.concrete_fields if not field.primary_key}
MAX_LENGTH = {name: field.max_length for name, field in _COLUMNS.items() if isinstance(field, orm.CharField)}
_LAYOUT = tuple((name, field, name in MAX_LENGTH) for name, field in _COLUMNS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it was recorded. ``arguments`` is None if they were not stored; ``subagent``, ``dispatched``,
    ``rule`` and ``would`` (keys of rules, separated by spaces) in records that are older than these columns, as is
    ``person``, for whom a client called that signed in. ``trial`` is the roll-out in whose new arm the session was.
    ``detail`` is the name and the status of a load or unload, ``chosen_fields`` the arguments that an operator chose to
    record, by their paths; None if there are none.
    """

    id: int
    at: dt.datetime
    agent: str
    session: str
    request_id: str
    tool: str
    plugin: str
    outcome: str
    reason: str
    revision: int | None
    error: str
    duration_ms: int
    arguments_bytes: int
    result_bytes: int
    arguments: Any
    subagent: str | None
    person: str | None
    dispatched: bool | None
    rule: str | None
    would: str | None
    trial: int | None
    detail: str | None
    chosen_fields: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Calls, newest first; the number of all matches; whether there are older ones."""

    calls: tuple[Call, ...]
    total: int
    has_older: bool


class CallQuery(TypedDict, total=False):
    """Filters of calls: all of them must match, and empty ones are ignored. ``since`` is inclusive, ``until``
    exclusive. The outcome :data:`ERROR` is any that is an error.
    """

    agent: str
    session: str
    tool: str
    plugin: str
    outcome: str
    since: dt.datetime | None
    until: dt.datetime | None


_LOOKUPS = {"since": "at__gte", "until": "at__lt"}


def are_any() -> bool:
    """Return whether any call is recorded."""
    return models.CallRecord.objects.exists()


def page(
    *,
    older_than: int | None = None,
    size: int = 50,
    **filters: Unpack[CallQuery],
) -> Page:
    """Return a page of the calls that match, newest first; those before the call ``older_than``."""
    rows_ = matching(**filters)
    older = rows_ if older_than is None else rows_.filter(pk__lt=older_than)
    # One row more than requested tells whether there are older ones.
    rows = list(older.order_by("-id")[: size + 1])
    return Page(
        calls=tuple(_call(row) for row in rows[:size]),
        total=rows_.count(),
        has_older=len(rows) > size,
    )


def find(call: int) -> Call | None:
    """Return one call; None if it does not exist, or no longer."""
    row = models.CallRecord.objects.filter(pk=call).first()
    return _call(row) if row is not None else None


def iterate(**filters: Unpack[CallQuery]) -> Iterator[tuple[Call, ...]]:
    """Yield all calls that match, newest first, a few hundred at a time."""
    rows = matching(**filters).order_by("-id")
    batch = tuple(map(_call, rows[:READ_BATCH_SIZE]))
    while batch:
        yield batch
        batch = (
            tuple(map(_call, rows.filter(pk__lt=batch[-1].id)[:READ_BATCH_SIZE]))
            if len(batch) == READ_BATCH_SIZE
            else ()
        )


def count_newer(than: int, *, maximum: int, **filters: Unpack[CallQuery]) -> int:
    """Return the number of matching calls after this one, at most ``maximum``, so that few rows are read."""
    rows_ = matching(**filters)
    newer: int = rows_.filter(pk__gt=than).order_by("id")[:maximum].count()
    return newer


def exceeds(limit: int, **filters: Unpack[CallQuery]) -> bool:
    """Return whether more calls than this match, without reading more of them."""
    return bool(matching(**filters).order_by().values("pk")[limit : limit + 1].exists())


def matching(**filters: Unpack[CallQuery]) -> Any:
    """Return the rows that match."""
    lookups: dict[str, Any] = {_LOOKUPS.get(name, name): value for name, value in filters.items() if value}
    outcome = lookups.pop("outcome", "")
    rows = models.CallRecord.objects.filter(**lookups)
    if outcome == ERROR:
        return rows.exclude(outcome__in=NO_ERROR)
    if outcome == UNREPORTED:
        return rows.filter(outcome=ADMITTED, report_by__lt=timezone.now())
    if outcome == ADMITTED:
        return rows.filter(outcome=ADMITTED, report_by__gte=timezone.now())
    return rows.filter(outcome=outcome) if outcome else rows


class Reported(NamedTuple):
    """A call that was reported; ``was_open``: for the first time. ``rule`` is the gate rule that decided about it."""

    was_open: bool
    tool: str
    session: str
    duration_ms: int
    rule: str


def report(
    agent: str, call_id: str, outcome: str, *, error: str, duration_ms: int | None, result_bytes: int
) -> Reported | None:
    """Complete the record of an admitted call, unless it was reported already; return None if there is none.

    Without a duration, the call took the time since its admission.
    """
    rows = models.CallRecord.objects.filter(agent=agent, call_id=call_id)
    row = rows.values_list("at", "tool", "session", "rule").first()
    if row is None:
        return None
    at, tool, session, rule = row
    if duration_ms is None:
        duration_ms = max(0, round((timezone.now() - at) / dt.timedelta(milliseconds=1)))
    changes = _fitting({"outcome": outcome, "error": error})
    was_open = rows.filter(outcome=ADMITTED).update(
        **changes, duration_ms=duration_ms, result_bytes=result_bytes
    )
    return Reported(bool(was_open), tool, session, duration_ms, rule or "")


def record_all(records: Iterable[Mapping[str, Any]]) -> int:
    """Add calls in one transaction, each by the names of its columns; return how many.

    The ``state`` is the document of a session's state, which is stored once; the record names it by its digest. Texts
    that are longer than their column are cut. The statement is not Django's, which takes twice as long.
    """
    connection = connections[router.db_for_write(models.CallRecord)]
    states: dict[str, str] = {}
    rows = [_row(_with_digest(record, states), connection) for record in records]
    if rows:
        with transaction.atomic(using=connection.alias):
            if states:
                _keep(states)
            with connection.cursor() as cursor:
                cursor.executemany(_insertion(connection.alias), rows)
    return len(rows)


def _with_digest(record: Mapping[str, Any], states: dict[str, str]) -> Mapping[str, Any]:
    """Return the record with the digest of the session's state, whose document is added to the ``states``."""
    document = record.get("state")
    if not document:
        return record
    digest = hashlib.blake2b(document.encode(errors="surrogatepass"), digest_size=12).hexdigest()
    states[digest] = document
    return {**record, "state": digest}


def _keep(states: Mapping[str, str]) -> None:
    """Store the documents of sessions' states by their digests, and that they were used today."""
    today = timezone.now().date()
    # In order, so that two processes do not wait for each other's rows.
    models.SessionState.objects.bulk_create(
        [
            models.SessionState(digest=digest, document=json.loads(document), used=today)
            for digest, document in sorted(states.items())
        ],
        update_conflicts=True,
        unique_fields=["digest"],
        update_fields=["used"],
    )


def prune(before: dt.datetime) -> int:
    """Delete the calls before this time, and the states of sessions that only they name; return the number of calls."""
    # By their last use, which a record that is being written moves under the lock of the row.
    models.SessionState.objects.filter(used__lt=before.astimezone(dt.UTC).date()).delete()
    deleted = 0
    while True:
        oldest = list(
            models.CallRecord.objects.filter(at__lt=before)
            .order_by("at")
            .values_list("pk", flat=True)[:DELETE_BATCH_SIZE]
        )
        if not oldest:
            return deleted
        deleted += models.CallRecord.objects.filter(pk__in=oldest).delete()[0]


def _call(row: models.CallRecord) -> Call:
    fields = {field: getattr(row, field) for field in Call.__slots__}
    return Call(**{**fields, "outcome": row.outcome_now})


@functools.cache
def _insertion(alias: str) -> str:
    quote = connections[alias].ops.quote_name
    names = ", ".join(quote(str(field.column)) for field in _COLUMNS.values())
    values = ", ".join(["%s"] * len(_COLUMNS))
    table = quote(models.CallRecord._meta.db_table)
    return f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 (names are constants)


def _time(value: dt.datetime, connection: BaseDatabaseWrapper) -> Any:
    """Return the time as the database stores it."""
    if connection.vendor == "sqlite" and value.tzinfo is connection.timezone is dt.UTC:
        # The conversion takes four times as long with a time zone.
        value = value.replace(tzinfo=None)
    return connection.ops.adapt_datetimefield_value(value)


def _row(record: Mapping[str, Any], connection: BaseDatabaseWrapper) -> list[Any]:
    """Return the values of the columns, as the database stores them."""
    row = []
    for name, field, is_text in _LAYOUT:
        value = record[name] if name in record else field.get_default()
        if value is None or value == "" or type(value) is int:
            pass
        elif is_text:
            value = _fit(name, value)
        elif isinstance(value, dt.datetime):
            value = _time(value, connection)
        else:
            value = field.get_db_prep_save(value, connection)
        row.append(value)
    return row


def _fitting(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with texts that fit its columns."""
    return {name: _fit(name, value) if isinstance(value, str) else value for name, value in record.items()}


def _fit(name: str, text: str) -> str:
    # PostgreSQL stores no NUL, and UTF-8 no lone surrogates; names that a model invents may contain both.
    if text.isascii() and "\0" not in text:
        return text[: MAX_LENGTH[name]]
    sound = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return sound[: MAX_LENGTH[name]]
