"""The facts of recorded calls, from which they can be decided again (:mod:`toolbelt.core.replay`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from django.db import models as orm
from django.db.models import functions

from toolbelt import models
from toolbelt.core import reach, replay
from toolbelt.store import catalog

_CHUNK = 2000
# How many different facts are kept at a time.
_MAX_KNOWN = 100_000
_FACTS = (
    "has_session",
    "agent",
    "tool",
    "state",
    "subagent",
    "dispatched",
    "definition",
    "outcome",
    "detail",
)
_HAS_SESSION = {"has_session": orm.Q(session__gt="")}
_ARGUMENTS = {"chosen": catalog.as_text("chosen_fields"), "all_arguments": catalog.as_text("arguments")}
# The columns of the facts in the order of their fields: has_session after the agent and the tool.
_Row = tuple[Any, ...]
_Value = TypeVar("_Value")


class Window(NamedTuple):
    """The calls that arrived from ``since`` until ``before`` (None: now), and of these those with an id after ``after``
    and up to ``until`` (None: all); only those in the new arm of a ``trial``, if one is named.
    """

    since: dt.datetime
    before: dt.datetime | None = None
    after: int = 0
    until: int | None = None
    trial: int | None = None

    def rows(self) -> orm.QuerySet[models.CallRecord]:
        """Return their records."""
        rows = models.CallRecord.objects.filter(at__gte=self.since)
        if self.before is not None:
            rows = rows.filter(at__lt=self.before)
        if self.after:
            rows = rows.filter(pk__gt=self.after)
        if self.trial is not None:
            rows = rows.filter(trial=self.trial)
        return rows if self.until is None else rows.filter(pk__lte=self.until)

    def days(self) -> list[Window]:
        """Return the windows of its days, in UTC, that have calls."""
        days = (
            self.rows().order_by().values_list(functions.TruncDate("at", tzinfo=dt.UTC), flat=True).distinct()
        )
        windows = []
        for day in sorted(day for day in days if day is not None):
            begin = dt.datetime.combine(day, dt.time(), dt.UTC)
            end = begin + dt.timedelta(days=1)
            before = end if self.before is None else min(end, self.before)
            windows.append(self._replace(since=max(begin, self.since), before=before))
        return windows


class Recorded(NamedTuple):
    """A recorded call: its id, when it arrived, its session (empty: none), and its facts."""

    id: int
    at: dt.datetime
    session: str
    facts: replay.Facts


class Group(NamedTuple):
    """Recorded calls with the same facts: how many there are and are recent, and when the last arrived."""

    facts: replay.Facts
    calls: int
    recent: int
    last: dt.datetime


class Decided(NamedTuple):
    """A recorded call with the revision that decided on it, and the reason code of its tool's state."""

    id: int
    at: dt.datetime
    revision: int
    reason: str
    facts: replay.Facts


def newest_id() -> int:
    """Return the id of the newest record; 0 if there is none."""
    return models.CallRecord.objects.order_by("-id").values_list("id", flat=True).first() or 0


def would_have_decided(window: Window) -> dict[str, int]:
    """Return how many calls of a window an observed gate rule would have decided, by rule."""
    counts: dict[str, int] = {}
    rows = window.rows().exclude(would=None).exclude(would="").order_by()
    for would, calls in rows.values_list("would").annotate(calls=orm.Count("*")):
        for rule in (would or "").split():
            counts[rule] = counts.get(rule, 0) + calls
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class Reader:
    """The calls of a window: all of them, or those in reach of a change, and others if it reaches far.

    Only those of the tools ``argued`` are read with the arguments that are recorded, because these make their facts
    many.
    """

    def __init__(
        self, window: Window, *, within: reach.Reach | None = None, argued: Collection[str] = ()
    ) -> None:
        rows = window.rows().annotate(**_HAS_SESSION)
        if within is not None and within.is_narrow:
            rows = rows.filter(orm.Q(agent__in=within.agents) | orm.Q(tool__in=within.tools))
        self._rows = rows
        self._queries: list[tuple[orm.QuerySet[Any, Any], tuple[str, ...]]] = [
            (rows.exclude(tool__in=argued) if argued else rows, _FACTS)
        ]
        if argued:
            with_arguments = rows.filter(tool__in=argued).annotate(**_ARGUMENTS)
            self._queries.append((with_arguments, (*_FACTS, *_ARGUMENTS)))
        states = models.SessionState.objects.values_list("digest", catalog.as_text("document"))
        # A state whose document is gone is not known.
        self._states: dict[str | None, str | None] = {"": "", **dict(states)}

    def grouped(self, recently: dt.datetime) -> Iterator[Group]:
        """Yield the calls, grouped by their facts. Recent are those that arrived since ``recently``."""
        recent = orm.Count("pk", filter=orm.Q(at__gte=recently))
        for rows, columns in self._queries:
            groups = rows.order_by().values_list(*columns)
            counted = groups.annotate(calls=orm.Count("*"), recent=recent, last=orm.Max("at"))
            for *row, calls, of_recent, last in counted.iterator(chunk_size=_CHUNK):
                yield Group(self._facts(tuple(row)), calls, of_recent, last)

    def sessions(self, among: Mapping[replay.Facts, _Value]) -> Iterator[tuple[_Value, int, str]]:
        """Yield what ``among`` has for the facts of each call, with its id and its session, the newest call first."""
        agents, tools = {facts.agent for facts in among}, {facts.tool for facts in among}
        known: dict[_Row, _Value | None] = {}
        for rows, columns in self._queries:
            calls = rows.filter(agent__in=agents, tool__in=tools).order_by("-id")
            # Their times are not read: converting those takes as long as all the rest.
            for row in calls.values_list("id", "session", *columns).iterator(_CHUNK):
                if (key := row[2:]) not in known:
                    known[key] = among.get(self._facts(key))
                if (value := known[key]) is not None:
                    yield value, row[0], row[1]

    def by_revision(self) -> Iterator[tuple[Recorded, int | None]]:
        """Yield the calls with their revisions, the newest revision first; those without one come last."""
        rows = self._rows.annotate(**_ARGUMENTS).order_by(orm.F("revision").desc(nulls_last=True), "-id")
        columns = ("id", "at", "session", "revision", *_FACTS, *_ARGUMENTS)
        known: dict[_Row, replay.Facts] = {}
        for call, at, session, revision, *row in rows.values_list(*columns).iterator(_CHUNK):
            key = tuple(row)
            if (facts := known.get(key)) is None:
                if len(known) >= _MAX_KNOWN:
                    known.clear()
                facts = known[key] = self._facts(key)
            yield Recorded(call, at, session, facts), revision

    def revisions(self) -> list[int]:
        """Return the revisions that decided on the calls, the newest first."""
        rows = self._queries[0][0].filter(revision__isnull=False, definition__isnull=False)
        found = rows.order_by("-revision").values_list("revision", flat=True).distinct()
        return [number for number in found if number is not None]

    def decided(self, revisions: Collection[int]) -> Iterator[Decided]:
        """Yield the calls that were decided at these revisions, the newest revision first."""
        rows = self._queries[0][0].filter(revision__in=revisions, definition__isnull=False)
        calls = rows.order_by("-revision", "-id").values_list("id", "at", "revision", "reason", *_FACTS)
        for call, at, revision, reason, *row in calls.iterator(_CHUNK):
            yield Decided(call, at, revision or 0, reason, self._facts(tuple(row)))

    def _facts(self, row: _Row) -> replay.Facts:
        has_session, agent, tool, state, *others = row
        return replay.Facts(agent, tool, has_session, self._states.get(state), *others)
