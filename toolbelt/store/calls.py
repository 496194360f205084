"""Which calls were made? Recorded one by one, and forgotten by age."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models as orm

from toolbelt import models

# How many records one statement forgets: others write between two of them.
AT_ONCE = 5000

LONGEST = {
    field.name: field.max_length
    for field in models.CallRecord._meta.concrete_fields
    if isinstance(field, orm.CharField)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, as it was recorded. ``arguments`` is None where they were not kept."""

    id: int
    at: dt.datetime
    agent: str
    session: str
    request_id: str
    tool: str
    plugin: str
    outcome: str
    error: str
    duration_ms: int
    arguments_bytes: int
    result_bytes: int
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Calls, newest first; how many match in all; whether there are older ones than these."""

    calls: tuple[Call, ...]
    total: int
    has_older: bool


def page(
    *,
    agent: str = "",
    session: str = "",
    tool: str = "",
    plugin: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    older_than: int | None = None,
    size: int = 50,
) -> Page:
    """Give a page of the calls for which all of these hold, newest first; those before the call ``older_than``.

    ``since`` lies within the time that is asked for, ``until`` behind its end.
    """
    matching = asked_for(
        agent=agent, session=session, tool=tool, plugin=plugin, outcome=outcome, since=since, until=until
    )
    rest = matching if older_than is None else matching.filter(pk__lt=older_than)
    # One more than is shown says whether there are more.
    rows = list(rest.order_by("-id")[: size + 1])
    return Page(
        calls=tuple(Call(**{field: getattr(row, field) for field in Call.__slots__}) for row in rows[:size]),
        total=matching.count(),
        has_older=len(rows) > size,
    )


def count_newer(
    than: int,
    *,
    most: int,
    agent: str = "",
    tool: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> int:
    """Count the calls behind this one for which all of these hold, as far as ``most``: few are read for the answer."""
    matching = asked_for(agent=agent, tool=tool, outcome=outcome, since=since, until=until)
    found: int = matching.filter(pk__gt=than).order_by("id")[:most].count()
    return found


def are_more(
    than: int,
    *,
    agent: str = "",
    tool: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> bool:
    """Say whether all of this holds for more calls than so many; no more of them are read."""
    matching = asked_for(agent=agent, tool=tool, outcome=outcome, since=since, until=until)
    return bool(matching.order_by().values("pk")[than : than + 1].exists())


def asked_for(*, since: dt.datetime | None = None, until: dt.datetime | None = None, **said: str) -> Any:
    """Give the rows for which all of this holds; ``said`` is by column, and what is empty narrows nothing."""
    asked: dict[str, Any] = {**said, "at__gte": since, "at__lt": until}
    return models.CallRecord.objects.filter(**{field: value for field, value in asked.items() if value})


def record_all(told: Iterable[Mapping[str, Any]]) -> int:
    """Add calls in a few statements, each by the names of its columns; return how many.

    Texts that are longer than their column are cut.
    """
    rows = [models.CallRecord(**_fitting(one)) for one in told]
    return len(models.CallRecord.objects.bulk_create(rows, batch_size=500))


def any_there() -> bool:
    """Say whether any call was recorded."""
    return models.CallRecord.objects.exists()


def prune(before: dt.datetime) -> int:
    """Forget the calls that came in before this; say how many."""
    forgotten = 0
    while True:
        oldest = list(
            models.CallRecord.objects.filter(at__lt=before)
            .order_by("at")
            .values_list("pk", flat=True)[:AT_ONCE]
        )
        if not oldest:
            return forgotten
        forgotten += models.CallRecord.objects.filter(pk__in=oldest).delete()[0]


def _fitting(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with texts that its columns take."""
    return {name: _fit(name, value) if isinstance(value, str) else value for name, value in told.items()}


def _fit(name: str, text: str) -> str:
    # PostgreSQL keeps no NUL, and UTF-8 no halves of characters; a name that a model made up may hold both.
    sound = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return sound[: LONGEST[name]]
