"""Copying rows of a comparison from one agent to another, or from an agent's past.

All rows are copied in one transaction, or none; each has an audit entry, and they share a batch, so that they can be
undone together. What is copied is what was shown: if a row has changed on either side, nothing is copied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolbelt.control import guards, impacts, writing
from toolbelt.control.agents import comparing
from toolbelt.control.catalog import entries
from toolbelt.core import belts, effects, errors, schema
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The effects of copying these rows. ``reasons`` are those for which any change like it must be confirmed; ``seen``
    identifies the rows as they are on both sides.
    """

    comparison: comparing.Comparison
    rows: tuple[belts.Row, ...]
    effect: effects.Effect
    reasons: tuple[str, ...]
    seen: str


def plan(a: str, b: str, rows: Collection[str] | None, *, only: Collection[str] = ()) -> Plan:
    """Return the effects of copying these rows (by id; None: all possible ones) from side ``a`` to the agent ``b``,
    without copying them. ``only`` limits all rows to these parts.

    Raise as :func:`copy` does, except for ``seen``.
    """
    comparison = comparing.compare(a, b)
    if rows is None:
        rows = {row.id for row in comparison.rows if not only or row.part in only} - comparison.not_copyable
    selected = _selected_rows(comparison, rows)
    current = snapshots.find(comparison.b.key, None)
    entry = {**belts.copy_rows(comparison.b.entry, selected), "key": comparison.b.key}
    whole = belts.entry("agent", current.agent, with_secrets=True)
    entry = belts.restored("agent", entry, whole)
    problems = belts.check_entry("agent", entry, entries.name_index(), stored=whole)
    if problems:
        raise errors.Invalid(problems)
    proposed = belts.value("agent", entry, current.catalog)
    effect = guards.check(current.catalog, current.agent, proposed, current.agent.key, confirm=True)
    return Plan(
        comparison=comparison,
        rows=selected,
        effect=impacts.with_sessions(current.catalog, current.agent, proposed, effect),
        reasons=tuple(guards.confirmation_reasons(current.catalog, current.agent, proposed, None, effect)),
        seen=_seen(selected),
    )


def copy(write: writing.Write, a: str, b: str, rows: Collection[str], *, seen: str) -> writing.Change:
    """Copy these rows from side ``a`` to the agent ``b``. A caller who passes ``seen`` has seen the plan, and confirms.

    Raise NotFound, Invalid for what cannot be copied (with its path), Refused for a budget that would be exceeded, or
    Stale if a row is not as it was ``seen``.
    """
    with writing.begin():
        comparison = comparing.compare(a, b)
        ids = {row.id for row in comparison.rows}
        missing = [row for row in rows if row not in ids]
        selected = _selected_rows(comparison, [row for row in rows if row in ids])
        if missing or _seen(selected) != seen:
            raise errors.Stale(
                f"What you copy to {b}",
                "the rows that you selected",
                "different",
                by=writing.author(write, "agent", comparison.b.key),
            )
        now = comparison.b.entry
        merged = belts.copy_rows(now, selected)
        changed = [key for key in {**now, **merged} if now.get(key) != merged.get(key)]
        write = write.replace(reason=write.reason or _reason(comparison.a), confirm=True).in_batch()
        changes = {key: merged.get(key) for key in changed}
        return entries.change(write, "agent", comparison.b.key, changes)


def _selected_rows(comparison: comparing.Comparison, rows: Collection[str]) -> tuple[belts.Row, ...]:
    if not comparison.b.is_now:
        raise errors.Refused(
            f"Nothing can be copied to {comparison.b.name}: the second side must be the current version of an agent."
        )
    requested = set(rows)
    by_id = {row.id: row for row in comparison.rows}
    if unknown := requested.difference(by_id):
        raise errors.NotFound("difference", min(unknown), by_id)
    problems = [
        errors.Problem(path=row_id, message="It names something that no longer exists: leave it out.")
        for row_id in by_id
        if row_id in requested and row_id in comparison.not_copyable
    ]
    if problems:
        raise errors.Invalid(problems)
    return tuple(row for row in comparison.rows if row.id in requested)


def _reason(side: comparing.Side) -> str:
    if side.version is None:
        return f"Copied from {side.key or f'the loadout {side.loadout}'}."
    last = side.version.last
    return f"Copied from {side.key} {f'after change {last.id}' if last else 'before its first change'}."


def _seen(rows: Sequence[belts.Row]) -> str:
    text = schema.canonical([[row.id, row.a, row.b] for row in rows])
    return hashlib.sha256(text.encode()).hexdigest()
