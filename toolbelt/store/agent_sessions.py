"""Sessions: what conversations have loaded, changed under a lock so that concurrent changes are not lost."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

from toolbelt import models
from toolbelt.core import sessions
from toolbelt.store import clock

_T = TypeVar("_T")

# How many sessions one statement deletes, so that others can write in between.
DELETE_BATCH_SIZE = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session as it is stored: its agent, its content, its creation, and its last change."""

    agent: str
    session: sessions.Session
    created: dt.datetime
    changed: dt.datetime


def change(
    agent_id: int,
    key: str,
    apply: Callable[[sessions.Session], tuple[_T, sessions.Session | None]],
) -> _T:
    """Pass the session to ``apply`` under the lock of its row, and store the session that it returns, if any.

    Changes of one session are serialized, including the first two; those of other sessions run in parallel.
    """
    with transaction.atomic():
        row, is_new = models.AgentSession.objects.select_for_update(of=("self",)).get_or_create(
            agent_id=agent_id, key=key
        )
        answer, updated = apply(value(key, row.loadout, row.state))
        if updated is not None:
            row.loadout, row.state, row.changed = updated.loadout, state(updated), clock.now()
            row.save()
        elif is_new:
            # The row was only created for the lock.
            row.delete()
    return answer


def bring(agent: str, key: str, names: Collection[str], tool: str) -> None:
    """Add labels that a call of ``tool`` brings to a session of an agent, in the current transaction."""
    agent_id = models.Agent.objects.values_list("pk", flat=True).get(key=agent)
    at = clock.now().isoformat(timespec="seconds")
    change(agent_id, key, lambda session: (None, sessions.with_labels(session, names, tool, at)))


def page(
    agent_id: int | None,
    offset: int,
    limit: int,
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> tuple[list[StoredSession], int]:
    """Return a page of the sessions, of one agent or of all, the last changed first; and the number of all.

    Only those last changed from ``since`` on, and before ``until``.
    """
    rows = models.AgentSession.objects.order_by("-changed", "-id")
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    if since is not None:
        rows = rows.filter(changed__gte=since)
    if until is not None:
        rows = rows.filter(changed__lt=until)
    rows_ = rows.select_related("agent")[offset : offset + limit]
    return [_stored(row) for row in rows_], rows.count()


def live(
    agent: str, since: dt.datetime, maximum: int, also: Collection[str] = ()
) -> tuple[list[sessions.Session], int]:
    """Return at most ``maximum`` sessions of the agent that loaded something or called a tool since then, the latest
    first, after those in ``also``; and the number of all. A session that only called tools has loaded nothing.
    """
    changed = models.AgentSession.objects.filter(agent__key=agent, changed__gte=since)
    called = models.CallRecord.objects.filter(agent=agent, at__gte=since).exclude(session="")
    keys = dict.fromkeys(also) | dict.fromkeys(changed.order_by("-changed").values_list("key", flat=True))
    keys.update(dict.fromkeys(called.order_by().values_list("session", flat=True).distinct()))
    latest = list(keys)[:maximum]
    stored = {
        row.key: value(row.key, row.loadout, row.state)
        for row in models.AgentSession.objects.filter(agent__key=agent, key__in=latest)
    }
    return [stored.get(key) or sessions.Session(key=key) for key in latest], len(keys)


def live_of(agents: Collection[str], since: dt.datetime) -> dict[str, set[str]]:
    """Return the names of each agent's sessions that loaded something or called a tool since then."""
    changed = models.AgentSession.objects.filter(agent__key__in=agents, changed__gte=since)
    called = models.CallRecord.objects.filter(agent__in=agents, at__gte=since).exclude(session="")
    by_agent: dict[str, set[str]] = {}
    pairs = [
        *changed.order_by().values_list("agent__key", "key"),
        *called.order_by().values_list("agent", "session").distinct(),
    ]
    for agent, key in pairs:
        by_agent.setdefault(agent, set()).add(key)
    return by_agent


def find(agent_id: int, key: str) -> StoredSession | None:
    """Return one session, or None if nothing is stored for it."""
    row = models.AgentSession.objects.filter(agent_id=agent_id, key=key).select_related("agent").first()
    return _stored(row) if row is not None else None


def forget(
    agent_id: int,
    key: str,
    check: Callable[[sessions.Session], None] = lambda session: None,
    *,
    keep_labels: bool = False,
) -> StoredSession | None:
    """Delete a session and return it; None if nothing was stored for it. With ``keep_labels``, one that has labels is
    stored without anything else.

    ``check`` is called with the session under the lock of its row; if it raises, the session is kept.
    """
    with transaction.atomic():
        rows = models.AgentSession.objects.filter(agent_id=agent_id, key=key)
        row = rows.select_related("agent").select_for_update(of=("self",)).first()
        if row is None:
            return None
        deleted = _stored(row)
        check(deleted.session)
        if keep_labels and deleted.session.labels:
            kept = sessions.Session(key=key, labels=deleted.session.labels)
            row.loadout, row.state, row.changed = "", state(kept), clock.now()
            row.save()
        else:
            row.delete()
    return deleted


def prune(before: dt.datetime) -> int:
    """Delete the sessions that were last changed before this; return their number."""
    deleted = 0
    while True:
        rows = models.AgentSession.objects.filter(changed__lt=before)
        oldest = list(rows.order_by("changed").values_list("pk", flat=True)[:DELETE_BATCH_SIZE])
        if not oldest:
            return deleted
        # The age is checked again, because one may have been changed since.
        deleted += models.AgentSession.objects.filter(pk__in=oldest, changed__lt=before).delete()[0]


def value(key: str, loadout: str, stored_state: str | Mapping[str, Any]) -> sessions.Session:
    """Return the session of a row; invalid parts of its state are skipped."""
    document = json.loads(stored_state) if isinstance(stored_state, str) else stored_state
    changes = document.get("changes") if isinstance(document, Mapping) else None
    labels = document.get("labels") if isinstance(document, Mapping) else None
    labels_ = (_label(label) for label in labels) if isinstance(labels, list) else ()
    changes_ = (_change(change) for change in changes) if isinstance(changes, list) else ()
    return sessions.Session(
        key=key,
        loadout=loadout,
        by_agent=isinstance(document, Mapping) and document.get("by_agent") is True,
        changes=tuple(change for change in changes_ if change is not None),
        labels=tuple(label for label in labels_ if label is not None),
    )


def state(session: sessions.Session) -> dict[str, Any]:
    """Return the state of the session as it is stored in its row."""
    return {
        **({"by_agent": True} if session.by_agent else {}),
        "changes": [
            {
                "kind": change.kind,
                "name": change.name,
                "on": change.on,
                "request_id": change.request_id,
                "before": change.before,
                "at": change.at,
            }
            for change in session.changes
        ],
        **({"labels": [dataclasses.asdict(label) for label in session.labels]} if session.labels else {}),
    }


def _label(written: Any) -> sessions.Label | None:
    match written:
        case {"name": str(name)}:
            tool, at = written.get("tool"), written.get("at")
            return sessions.Label(
                name=name,
                tool=tool if isinstance(tool, str) else "",
                at=at if isinstance(at, str) else "",
            )
    return None


def _change(written: Any) -> sessions.Change | None:
    match written:
        case {"kind": ("toolkit" | "plugin" | "tool") as kind, "name": str(name), "on": bool(on)}:
            request_id, at = written.get("request_id"), written.get("at")
            return sessions.Change(
                kind=kind,
                name=name,
                on=on,
                request_id=request_id if isinstance(request_id, str) else None,
                before=written.get("before") is True,
                at=at if isinstance(at, str) else "",
            )
    return None


def _stored(row: models.AgentSession) -> StoredSession:
    return StoredSession(
        agent=row.agent.key,
        session=value(row.key, row.loadout, row.state),
        created=row.created,
        changed=row.changed,
    )
