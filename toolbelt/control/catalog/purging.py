"""Purges: a tool or the texts of a toolkit must leave every conversation (docs/how-to/set-many-at-once.md).

Conversations that have read it begin again with their next request, and calls of a purged tool are refused in them
at once. A purge changes nothing that agents have, so what must leave is edited or blocked first.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from toolbelt.control import impacts, writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import blocking
from toolbelt.core import catalog, effects, errors, texts
from toolbelt.store import audit, purges, snapshots

Kind = Literal["tool", "toolkit"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_KEPT = "Messages that programs keep stay as they are, also where a model or a result repeats it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What a purge concerns: the live ``conversations``, and the ``agents`` that have it as it is now."""

    conversations: effects.Conversations
    agents: tuple[str, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return what must be confirmed."""
        sentence = self.conversations.sentence
        counted = f"{sentence[:1].upper()}{sentence[1:]}."
        if not self.agents:
            return counted, _KEPT
        verb = "has" if len(self.agents) == 1 else "have"
        having = (
            f"{texts.listing(self.agents)} {verb} it as it is now, on or on request."
            " If that must not be read either, edit or block it first."
        )
        return counted, having, _KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeChange(writing.Change):
    """The result of a purge."""

    purge: Purge


def find(target: str) -> tuple[Kind, str]:
    """Return the kind and the name of what ``target`` names: a tool or a toolkit, by its name alone or with its kind
    before it, as in ``toolkit:kb``.

    Raise errors.NotFound, or errors.Refused for a name of both.
    """
    stored = snapshots.catalog()
    found = [kind for kind in KINDS if _exists(stored, kind, target)]
    if len(found) > 1:
        raise errors.Refused(
            f"{target} is the name of a tool and of a toolkit: write tool:{target} or toolkit:{target}."
        )
    if found:
        return found[0], target
    prefix, _, name = target.partition(":")
    for kind in KINDS:
        if kind == prefix:
            _check(stored, kind, name)
            return kind, name
    raise errors.NotFound("tool or toolkit", target, [*stored.tools, *stored.toolkits])


def plan(kind: Kind, name: str) -> Purge:
    """Return what a purge would concern. Raise errors.NotFound for what never existed."""
    stored = snapshots.catalog()
    _check(stored, kind, name)
    return _plan(stored, kind, name)


def last(kind: Kind, name: str) -> dt.datetime | None:
    """Return when something was last purged; None if it never was."""
    return purges.find(kind, name)


def purge(write: writing.Write, kind: Kind, name: str) -> PurgeChange:
    """Purge a tool or the texts of a toolkit, also one that was removed.

    Raise errors.NotFound for what never existed, or errors.ConfirmationRequired.
    """
    planned = plan(kind, name)
    if not write.confirm:
        raise errors.ConfirmationRequired(planned.reasons, describe(kind, name, planned))
    with writing.begin():
        before, after = _document(purges.find(kind, name)), _document(purges.put(kind, name))
        entry = _record(write, kind, name, before, after)
    return PurgeChange(entry=entry, before=before, after=after, purge=planned)


def restore(
    write: writing.Write,
    kind: Kind,
    name: str,
    to: Mapping[str, Any],
    was: Mapping[str, Any],
) -> writing.Change:
    """Undo a purge: conversations that have not begun again go on. Raise errors.Stale if it was purged again."""
    with writing.begin():
        now = _document(purges.find(kind, name))
        if now != was:
            subject = f"The purge of {kind} {name}"
            raise errors.Stale(subject, was, now, to, by=writing.author(write, kind, name))
        purges.restore(kind, name, dt.datetime.fromisoformat(to["purged"]) if to["purged"] else None)
        entry = _record(write, kind, name, now, to)
    return writing.Change(entry=entry, before=now, after=to)


def describe(kind: Kind, name: str, planned: Purge) -> dict[str, Any]:
    """Return what a purge concerns as plain values, for the API and ConfirmationRequired."""
    return {
        "key": name,
        "kind": kind,
        "agents": list(planned.agents),
        "conversations": planned.conversations._asdict(),
    }


def _record(
    write: writing.Write, kind: Kind, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> int:
    action = "tool.purge" if kind == "tool" else "toolkit.purge"
    return writing.record(write, kind, name, action=action, before=before, after=after)


def _plan(stored: catalog.Catalog, kind: Kind, name: str) -> Purge:
    agents: tuple[str, ...] = ()
    if name in _names(stored, kind):
        agents = tuple(blocking.agents_with(access_index.load_with_catalog(stored), kind, name))
    return Purge(conversations=impacts.holding(kind, name, agents), agents=agents)


def _check(stored: catalog.Catalog, kind: Kind, name: str) -> None:
    if not _exists(stored, kind, name):
        raise errors.NotFound(kind, name, _names(stored, kind))


def _exists(stored: catalog.Catalog, kind: Kind, name: str) -> bool:
    """Return whether it exists, or did."""
    return name in _names(stored, kind) or bool(audit.newest(kind, [name]))


def _names(stored: catalog.Catalog, kind: Kind) -> Collection[str]:
    return stored.tools if kind == "tool" else stored.toolkits


def _document(at: dt.datetime | None) -> dict[str, str | None]:
    return {"purged": None if at is None else at.astimezone(dt.UTC).isoformat()}
