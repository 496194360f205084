"""Audit entries as documents, for the API and for exports."""

from __future__ import annotations

from typing import Any

from toolbelt.control.reports import queries

FIELDS = (
    "id",
    "at",
    "actor",
    "actor_kind",
    "asked_by",
    "via",
    "action",
    "kind",
    "name",
    "key",
    "before",
    "after",
    "reason",
    "batch",
    "undoes",
    "undone",
)


def serialize(entry: queries.Entry, *, is_open: bool) -> dict[str, Any]:
    """Return the entry by the names of :data:`FIELDS`; without its values if not ``is_open``, for readers who may not
    see things of its kind (connections of servers, for example).
    """
    undone = entry.undone
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "actor_kind": entry.actor_kind,
        "asked_by": entry.asked_by,
        "via": entry.via,
        "action": entry.action,
        "kind": entry.subject_kind,
        "name": entry.subject_key,
        "key": entry.key,
        "before": entry.before if is_open else None,
        "after": entry.after if is_open else None,
        "reason": entry.reason,
        "batch": entry.batch,
        "undoes": entry.undoes,
        "undone": undone and {"id": undone.id, "actor": undone.actor, "at": undone.at},
    }
