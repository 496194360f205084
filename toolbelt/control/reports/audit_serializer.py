"""Audit entries as documents, for the API and for exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.control.reports import queries
from toolbelt.core import texts

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
    "revision",
    "unlogged",
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
        "revision": entry.revision,
        "unlogged": entry.unlogged,
    }


def unlogged_words(unlogged: Mapping[str, Any]) -> str:
    """Return in words what was written without the log (see :func:`toolbelt.store.revisions.find_unlogged`)."""
    agents, number = unlogged["agents"], len(unlogged["agents"])
    written = ["the catalog"] if unlogged["catalog"] else []
    if agents:
        written.append(f"the agent{'s' if number > 1 else ''} {texts.listing(agents, 3)}")
    verb = "were" if len(written) > 1 or number > 1 else "was"
    what = " and ".join(written) or "an agent that no longer exists"
    return f"{what} {verb} written without the audit log, after revision {unlogged['since']}"
