"""How does one agent get what another one has, or what it had itself? Row by row, as a comparison lists them.

All rows come about in one transaction, or none does; each has an entry in the audit, and they share a batch, so that
they can be undone as one. What is copied is what was shown: if a row is not so any more on either side, nothing is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolbelt.control import actors, comparing, entries, guards, impacts, writing
from toolbelt.core import belts, effects, errors, schema
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What copying these rows would do. ``reasons`` are those for which any change like it asks to be confirmed;
    ``seen`` stands for the rows as they are, on both sides.
    """

    comparison: comparing.Comparison
    rows: tuple[belts.Row, ...]
    effect: effects.Effect
    reasons: tuple[str, ...]
    seen: str


def plan(a: str, b: str, rows: Collection[str] | None, *, only: Collection[str] = ()) -> Plan:
    """Say what copying these rows (their ids; None: all that can be) from side ``a`` to the agent ``b`` would do, and
    do nothing. ``only`` are the parts to which all of them is narrowed.

    Raises what :func:`copy` does, but for what was seen.
    """
    comparison = comparing.compare(a, b)
    if rows is None:
        rows = {row.id for row in comparison.rows if not only or row.part in only} - comparison.lost
    chosen = _chosen(comparison, rows)
    found = snapshots.find(comparison.b.key, None)
    entry = {**belts.copied(comparison.b.entry, chosen), "key": comparison.b.key}
    problems = belts.check_entry("agent", entry, entries.known())
    if problems:
        raise errors.Invalid(problems)
    wanted = belts.value("agent", entry, found.catalog)
    effect = guards.guarded(found.catalog, found.agent, wanted, found.agent.key, confirm=True)
    return Plan(
        comparison=comparison,
        rows=chosen,
        effect=impacts.of(found.catalog, found.agent, wanted, effect),
        reasons=tuple(guards.far_reaching(found.catalog, found.agent, wanted, None, effect)),
        seen=_seen(chosen),
    )


def copy(
    actor: actors.Actor, a: str, b: str, rows: Collection[str], *, seen: str, reason: str = ""
) -> writing.Change:
    """Copy these rows from side ``a`` to the agent ``b``. Whoever gives ``seen`` has seen the plan, and confirms.

    Raises NotFound, Invalid for what cannot be copied (with its path), Refused for a budget that would be passed, and
    Stale where a row is not as it was ``seen``.
    """
    with writing.begin():
        comparison = comparing.compare(a, b)
        there = {row.id for row in comparison.rows}
        gone = [row for row in rows if row not in there]
        chosen = _chosen(comparison, [row for row in rows if row in there])
        if gone or _seen(chosen) != seen:
            raise errors.Stale(f"What is to be copied to {b}", "the rows that were ticked", "another state")
        now = comparison.b.entry
        wanted = belts.copied(now, chosen)
        changed = [key for key in {**now, **wanted} if now.get(key) != wanted.get(key)]
        return entries.change(
            actor,
            "agent",
            comparison.b.key,
            {key: wanted.get(key) for key in changed},
            reason=reason or _because(comparison.a),
            confirm=True,
            batch=writing.new_batch(),
        )


def _chosen(comparison: comparing.Comparison, rows: Collection[str]) -> tuple[belts.Row, ...]:
    if not comparison.b.is_now:
        raise errors.Refused(
            f"Nothing can be copied to {comparison.b.name}: the second side has to be an agent as it is now."
        )
    wanted = set(rows)
    there = {row.id: row for row in comparison.rows}
    if unknown := wanted.difference(there):
        raise errors.NotFound("difference", min(unknown), there)
    problems = [
        errors.Problem(path=row_id, message="It names what is not there any more: leave it out.")
        for row_id in there
        if row_id in wanted and row_id in comparison.lost
    ]
    if problems:
        raise errors.Invalid(problems)
    return tuple(row for row in comparison.rows if row.id in wanted)


def _because(side: comparing.Side) -> str:
    if side.version is None:
        return f"As {side.key or f'loadout {side.loadout}'} is."
    last = side.version.last
    return f"As {side.key} was after change {last.id}." if last else f"As {side.key} was at first."


def _seen(rows: Sequence[belts.Row]) -> str:
    said = schema.canonical([[row.id, row.a, row.b] for row in rows])
    return hashlib.sha256(said.encode()).hexdigest()
