"""The configuration as it was at a moment, rebuilt from the audit log; nothing here writes.

What is no row is as it is today: the settings, and the texts of toolkits in code.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from toolbelt.core import agents, belts, catalog, errors, facts
from toolbelt.store import agents as agents_stored
from toolbelt.store import audit, revisions, snapshots, token_counts

# The id of an audit entry, for the state right after it; or a point in time.
Moment = int | dt.datetime
# The largest id that a database stores as a key of the log.
MAX_INTEGER = 2**63 - 1
# How often what is stored is read again, if it changed meanwhile.
_TRIES = 3
_OF_CATALOG = tuple(kind for kind in belts.KINDS if kind not in ("category", "agent"))


@dataclass(frozen=True, slots=True)
class Place:
    """A moment's place in the log: the id of the last entry by then, 0 if there is none, and its time."""

    entry: int
    at: dt.datetime


class Past:
    """The configuration, which steps back through the log from now: all of it, or of the agents only one.

    It is read once, so that all moments are consistent. ``place`` is the moment.
    """

    def __init__(self, agent: str | None = None) -> None:
        self._now, newest, unlogged = _read(agent)
        self._steps = audit.newest_first(until=newest)
        self._next = next(self._steps, None)
        self._history = belts.History(_Document(self._now))
        self._history.doubt(unlogged)
        self.place = Place(newest, timezone.now())
        # Until something but an agent changes, the catalog is the same.
        self._catalog: catalog.Catalog | None = self._now.catalog

    def to(self, moment: Place) -> None:
        """Step back to a moment, which is not later than the one before."""
        self.place = moment
        while self._next is not None and self._next[0] > moment.entry:
            step = self._next[1]
            self._history.step_back(step)
            if step.kind in belts.KINDS and step.kind != "agent":
                self._catalog = None
            self._next = next(self._steps, None)

    @property
    def history(self) -> belts.History:
        """Return the configuration at the moment, with what is uncertain in it."""
        return self._history

    def export(self) -> dict[str, Any]:
        """Return the configuration as a belt, without what is observed."""
        return {
            section: [
                facts.decided(belts.SECTIONS[section], entry) if isinstance(entry, Mapping) else entry
                for entry in written
            ]
            for section, written in self._history.document().items()
        }

    def compiled(self) -> catalog.Catalog:
        """Return the catalog of the moment, as it was stored then (see :meth:`catalog.Catalog.as_of`)."""
        if self._catalog is None:
            self._catalog = self._compile()
        return self._catalog

    def agent(self, key: str) -> tuple[Mapping[str, Any], agents.Agent] | None:
        """Return the entry and the value of an agent, as they are stored then; None if it did not exist."""
        entry = self._history.find("agent", key)
        if entry is None:
            return None
        return entry, self._value("agent", key, entry, self.compiled())

    def _compile(self) -> catalog.Catalog:
        document = self._history.document()
        categories = document.get("categories", ())
        # What an entry refers to comes before it.
        known = catalog.compile_(categories=categories)
        values: dict[str, Any] = {}
        for kind in _OF_CATALOG:
            spec = belts.KINDS[kind]
            values[spec.section] = [
                self._value(kind, str(spec.name_of(entry)), entry, known)
                for entry in document.get(spec.section, ())
            ]
            if kind == "tool":
                known = catalog.compile_(categories=categories, tools=values["tools"])
        return catalog.compile_(
            number=self._now.catalog.number,
            categories=categories,
            code=self._now.catalog.code,
            count_tokens=token_counts.count_policy,
            **values,
        )

    def _value(
        self, kind: belts.KindName, name: str, entry: Mapping[str, Any], stored: catalog.Catalog
    ) -> Any:
        """Return the value of an entry: the one of now, if nothing of it has changed."""
        of_kind = (
            self._now.agents if kind == "agent" else getattr(self._now.catalog, belts.KINDS[kind].section)
        )
        now = of_kind.get(name)
        if now is None:
            return belts.value(kind, dict(entry), stored, count_tokens=token_counts.count)
        # An agent's switches are told from its overrides by what exists then.
        if kind != "agent" and belts.entry(kind, now) == entry:
            return now
        whole = belts.restored(kind, dict(entry), belts.entry(kind, now, with_secrets=True))
        return belts.value(kind, whole, stored, count_tokens=token_counts.count)


def place(moment: Moment) -> Place:
    """Return the place of a moment in the log; raise errors.NotFound for an entry that does not exist."""
    if isinstance(moment, dt.datetime):
        return Place(audit.last_before(moment), moment)
    entry = audit.find(moment) if moment <= MAX_INTEGER else None
    if entry is None:
        raise errors.NotFound("change", str(moment))
    if entry.batch is not None:
        # A batch is one step, so its first entries alone were never in force.
        entry = audit.of_batch(entry.batch)[0]
    return Place(entry.id, entry.at)


def at(moment: Moment) -> Past:
    """Return the configuration at a moment; raise errors.NotFound."""
    found = place(moment)
    past = Past()
    past.to(found)
    return past


def parse(text: str, path: str) -> Moment:
    """Return the id of an audit entry, or a point in time (in the server's zone, if it names none).

    Raise errors.Invalid with ``path``.
    """
    if text.isascii() and text.isdigit():
        return int(text[:20])
    try:
        parsed = dt.datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is not a time: write the number of a change, or a time such as 2026-11-20T09:30."
        raise errors.Invalid([errors.Problem(path=path, message=message)]) from error
    return _in_zone(parsed, text, path)


def _in_zone(parsed: dt.datetime, text: str, path: str) -> dt.datetime:
    try:
        aware = parsed if timezone.is_aware(parsed) else timezone.make_aware(parsed)
        # On the first and last days of the calendar, some hours cannot be converted to UTC, for the database, or to the
        # server's zone, for display.
        _ = aware.astimezone(dt.UTC), timezone.localtime(aware)
        return aware
    except (ValueError, OverflowError) as error:
        raise errors.Invalid([errors.Problem(path=path, message=f"{text!r} is not a time.")]) from error


class _Document(Mapping[str, list[Any]]):
    """A configuration as a belt, of which only the sections are written that are read."""

    def __init__(self, belt: belts.Belt) -> None:
        self._belt = belt

    def __getitem__(self, section: str) -> list[Any]:
        written: list[Any] = belts.dump(self._belt, only=belts.SECTIONS[section]).get(section, [])
        return written

    def __iter__(self) -> Iterator[str]:
        return iter(belts.SECTIONS)

    def __len__(self) -> int:
        return len(belts.SECTIONS)


def _read(agent: str | None) -> tuple[belts.Belt, int, Mapping[str, Any] | None]:
    """Return the configuration as it is stored, the id of the newest entry in it, and what was written around the log
    since.
    """
    for _ in range(_TRIES):
        number, newest = revisions.number(), audit.newest_id()
        belt, unlogged = _belt(agent), revisions.find_unlogged()
        if revisions.number() == number:
            return belt, newest, unlogged
    with transaction.atomic():
        revisions.lock()
        return _belt(agent), audit.newest_id(), revisions.find_unlogged()


def _belt(agent: str | None) -> belts.Belt:
    found = agents_stored.load_as_written() if agent is None else [snapshots.find(agent, None).written]
    return belts.Belt(catalog=snapshots.catalog_as_written(), agents={value.key: value for value in found})
