"""Drift: how the configuration differs from the belt that was applied last, and who changed it since.

Only what was decided counts. What a server lists, or a clock ends, is no drift.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.utils import timezone

from toolbelt.control import writing
from toolbelt.control.config import belt_decisions, belts
from toolbelt.core import agents, catalog, facts, schema, texts
from toolbelt.core import belts as values
from toolbelt.store import agents as agent_rows
from toolbelt.store import applied_belts, audit, snapshots

Applied = applied_belts.AppliedBelt
STANDARD_INPUT = "standard input"
# How many differences a sentence names.
MAX_SHOWN = 5
# The longest name of a file that is stored.
_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An entry that is not as it was when the belt was applied. ``fields`` are those that were changed since, ``by``
    who changed them; empty if the audit log does not have the change. ``at`` is the last change.
    """

    kind: values.KindName
    name: str
    how: Literal["changed", "removed", "new"]
    fields: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    at: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The belt that was applied last, and the entries that differ from it."""

    applied: Applied
    differences: tuple[Difference, ...]

    @property
    def message(self) -> str:
        """Return what differs from which belt, in a sentence."""
        count = len(self.differences)
        verb = "differs" if count == 1 else "differ"
        entries = f"{count} {'entry' if count == 1 else 'entries'}"
        shown = "; ".join(map(line, self.differences[:MAX_SHOWN]))
        more = f"; and {count - MAX_SHOWN} more" if count > MAX_SHOWN else ""
        return f"{entries} {verb} from the belt applied last, {self.applied.name}: {shown}{more}."


def line(difference: Difference) -> str:
    """Return a difference in words: ``agent ada: pushing, changed by olive``."""
    fields = f" {texts.listing(difference.fields)}," if difference.fields else ""
    by = f" by {texts.listing(difference.by, 3)}" if difference.by else ""
    how = "created" if difference.how == "new" else difference.how
    return f"{values.KINDS[difference.kind].word} {difference.name}:{fields} {how}{by}"


def record(
    write: writing.Write, document: Mapping[str, Any], digest: str, *, name: str, prunes: bool
) -> None:
    """Record that this belt was applied, in the transaction that applied it."""
    stored = snapshots.catalog()
    named: dict[str, list[Any]] = {
        kind: [values.KINDS[kind].name_of(entry) for entry in document.get(section) or ()]
        for section, kind in belts.SECTIONS.items()
    }
    now = _entries(named, stored, agent_rows.load_all())
    applied_belts.store(
        Applied(
            name=name[-_NAME_LENGTH:],
            digest=digest,
            at=timezone.now(),
            actor=write.actor.name,
            entry=audit.newest_id(),
            entries={kind: of_kind for kind, of_kind in now.items() if of_kind},
            prunes=prunes,
        )
    )


def find() -> Drift | None:
    """Return how the configuration differs from the belt applied last; None if none was."""
    applied = applied_belts.find()
    if applied is None:
        return None
    stored, all_agents = snapshots.catalog(), agent_rows.load_all()
    now = _entries(applied.entries, stored, all_agents)
    found: dict[tuple[values.KindName, str], Literal["changed", "removed", "new"]] = {}
    for kind in values.KINDS:
        for name, digest in applied.entries.get(kind, {}).items():
            if (digest_now := now[kind].get(name)) != digest:
                found[kind, name] = "removed" if digest_now is None else "changed"
    if applied.prunes:
        known = applied.entries.get("agent", {})
        found |= {
            ("agent", agent.key): "new"
            for agent in all_agents
            if agent.key not in known and not agent.archived
        }
    return Drift(applied=applied, differences=_explained(applied, found))


def _explained(
    applied: Applied, found: Mapping[tuple[values.KindName, str], Literal["changed", "removed", "new"]]
) -> tuple[Difference, ...]:
    """Return the differences with the changes that made them, without those that were only observed."""
    if not found:
        return ()
    subjects: dict[str, list[str]] = {}
    for kind, name in found:
        subjects.setdefault(kind, []).append(name)
    changes: dict[tuple[str, str], list[audit.Entry]] = {}
    for entry in audit.changes_since(applied.entry, subjects):
        changes.setdefault((entry.subject_kind, entry.subject_key), []).append(entry)
    differences = []
    for (kind, name), how in found.items():
        since = changes.get((kind, name), [])
        decided = [entry for entry in since if not entry.is_fact]
        if since and not decided:
            continue
        fields = (field for entry in decided for field in _fields(entry)) if how == "changed" else ()
        differences.append(
            Difference(
                kind=kind,
                name=name,
                how=how,
                fields=tuple(dict.fromkeys(fields)),
                by=tuple(dict.fromkeys(entry.actor for entry in decided)),
                at=decided[-1].at if decided else None,
            )
        )
    return tuple(differences)


def _fields(entry: audit.Entry) -> list[str]:
    """Return what a change changed: a switch or an override by its toolkit or tool, and otherwise the fields."""
    if entry.key:
        return [entry.key]
    return [*entry.after] if isinstance(entry.after, Mapping) else []


def _entries(
    named: Mapping[str, Collection[Any]], stored: catalog.Catalog, all_agents: Sequence[agents.Agent]
) -> dict[values.KindName, dict[str, str]]:
    """Return the digest of what is decided of each named entry that exists, by kind and name."""
    existing: Mapping[values.KindName, Mapping[str, Any]] = {
        "category": {name: name for name in stored.categories},
        "plugin": stored.plugins,
        "tool": stored.tools,
        "toolkit": stored.toolkits,
        "loadout": stored.loadouts,
        "agent": {agent.key: agent for agent in all_agents},
        "sub_app": stored.sub_apps,
        "gate_rule": stored.gate_rules,
    }
    return {
        kind: {name: _digest(kind, of_kind[name], stored) for name in named.get(kind, ()) if name in of_kind}
        for kind, of_kind in existing.items()
    }


def _digest(kind: values.KindName, value: Any, stored: catalog.Catalog) -> str:
    written = values.entry(kind, value)
    if not isinstance(written, str):
        written = belt_decisions.without_texts(kind, facts.decided(kind, written), stored)
    return hashlib.sha256(schema.canonical(written).encode()).hexdigest()
