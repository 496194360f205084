"""The configuration as it was at a moment, rebuilt from the audit log; nothing here writes.

What is no row is as it is today: the settings, and the texts of toolkits in code.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from toolbelt.core import agents, belts, catalog, errors, facts, keys
from toolbelt.store import agents as agents_stored
from toolbelt.store import audit, revisions, snapshots, token_counts

# The id of an audit entry, for the state right after it; or a point in time.
Moment = int | dt.datetime
# The largest id that a database stores as a key of the log.
MAX_INTEGER = 2**63 - 1
# How often what is stored is read again, if it changed meanwhile.
_TRIES = 3
# The kinds whose values depend on which tools exist.
_OF_EXISTING: tuple[belts.KindName, ...] = ("toolkit", "sub_app")
_OF_CATALOG = tuple(kind for kind in belts.KINDS if kind not in ("category", "agent"))


@dataclass(frozen=True, slots=True)
class Place:
    """A moment's place in the log: the id of the last entry by then, 0 if there is none, and its time."""

    entry: int
    at: dt.datetime


class Compiled:
    """The values of a configuration that changes entry by entry: its catalog and its agents, compiled when needed.

    ``now`` is what is stored; ``find`` and ``names`` return the entries as they are to be compiled.
    """

    def __init__(
        self,
        now: belts.Belt,
        find: Callable[[belts.KindName, str], Mapping[str, Any] | None],
        names: Callable[[belts.KindName], list[str]],
    ) -> None:
        self._now, self._find, self._names = now, find, names
        self._catalog: catalog.Catalog | None = now.catalog
        self._values: dict[belts.KindName, dict[str, Any]] = {
            kind: {
                _name(kind, value): value
                for value in getattr(now.catalog, belts.KINDS[kind].section).values()
            }
            for kind in _OF_CATALOG
        }
        self._agents: dict[str, agents.Agent | None] = {}
        self._changed: dict[tuple[belts.KindName, str], None] = {}

    def change(self, kind: str, name: str) -> None:
        """Note that an entry is not as it was, or is missing now, or the order of its kind."""
        if kind == "agent":
            self._agents.pop(name, None)
            return
        if kind == "category":
            # How other entries spell it depends on it.
            for other, values in self._values.items():
                self._changed.update(dict.fromkeys((other, key) for key in values))
        elif kind in self._values:
            of_kind: belts.KindName = kind
            self._changed[of_kind, name] = None
            if (name in self._values[of_kind]) != (self._find(of_kind, name) is not None):
                # Other entries have only what exists.
                self._agents.clear()
                for other in _OF_EXISTING:
                    self._changed.update(dict.fromkeys((other, key) for key in self._values[other]))
        else:
            return
        self._catalog = None

    def stored(self) -> catalog.Catalog:
        """Return the catalog, as it is stored then (see :meth:`catalog.Catalog.as_of`)."""
        if self._catalog is None:
            self._catalog = self._compile()
        return self._catalog

    def agent(self, key: str) -> agents.Agent | None:
        """Return an agent, as it is stored then; None if there is none."""
        if key not in self._agents:
            entry = self._find("agent", key)
            self._agents[key] = None if entry is None else self._value("agent", key, entry, self.stored())
        return self._agents[key]

    def _compile(self) -> catalog.Catalog:
        categories = self._names("category")
        # What an entry refers to comes before it.
        known = catalog.compile_(categories=categories)
        for kind in _OF_CATALOG:
            of_kind = self._values[kind]
            changed = [name for other, name in self._changed if other == kind]
            if kind in _OF_EXISTING and changed and not known.tools:
                known = catalog.compile_(categories=categories, tools=self._values["tool"].values())
            for name in changed:
                entry = self._find(kind, name)
                if entry is None:
                    of_kind.pop(name, None)
                else:
                    of_kind[name] = self._value(kind, name, entry, known)
        self._changed.clear()
        values: dict[str, Any] = {
            belts.KINDS[kind].section: [self._values[kind][name] for name in self._names(kind)]
            for kind in _OF_CATALOG
        }
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
        now = of_kind.get(keys.fold(name) if kind == "loadout" else name)
        if now is None:
            return belts.value(kind, dict(entry), stored, count_tokens=token_counts.count)
        # An agent's switches are told from its overrides by what exists then.
        if kind != "agent" and belts.entry(kind, now) == entry:
            return now
        whole = belts.restored(kind, dict(entry), belts.entry(kind, now, with_secrets=True))
        return belts.value(kind, whole, stored, count_tokens=token_counts.count)


class Past:
    """The configuration, which steps back through the log from now: all of it, or of the agents only one.

    It is read once, so that all moments are consistent. ``place`` is the moment.
    """

    def __init__(self, agent: str | None = None) -> None:
        self.now, newest, unlogged = _read(agent)
        self._steps = audit.newest_first(until=newest)
        self._next = next(self._steps, None)
        self._history = belts.History(_Document(self.now))
        self._history.doubt(unlogged)
        self.place = Place(newest, timezone.now())
        self.values = Compiled(self.now, self._history.find, self._history.names)

    def to(self, moment: Place) -> list[tuple[str, str]]:
        """Step back to a moment, which is not later than the one before; return the kind and the name of each entry
        that is not as it was.
        """
        self.place = moment
        changed: dict[tuple[str, str], None] = {}
        while self._next is not None and self._next[0] > moment.entry:
            step = self._next[1]
            self._history.step_back(step)
            self.values.change(step.kind, step.name)
            changed[step.kind, step.name] = None
            self._next = next(self._steps, None)
        return [*changed]

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
        return self.values.stored()

    def agent(self, key: str) -> tuple[Mapping[str, Any], agents.Agent] | None:
        """Return the entry and the value of an agent, as they are stored then; None if it did not exist."""
        entry, value = self._history.find("agent", key), self.values.agent(key)
        return None if entry is None or value is None else (entry, value)


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


def _name(kind: belts.KindName, value: Any) -> str:
    return str(getattr(value, belts.KINDS[kind].named_by))


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
