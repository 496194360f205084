"""How is a change told as a document: to the API, and to whoever takes the log away?"""

from __future__ import annotations

from typing import Any

from toolbelt.control import queries

FIELDS = (
    "id",
    "at",
    "actor",
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


def document(entry: queries.Entry, *, is_open: bool) -> dict[str, Any]:
    """Give the entry by the names of :data:`FIELDS`. Not ``is_open``: without what was in the thing, for somebody who
    may not look at things of its kind (connections of servers, say).
    """
    undone = entry.undone
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
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
