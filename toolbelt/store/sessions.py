"""What has a conversation loaded, and how is that changed so that concurrent changes lose nothing?"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

from toolbelt import models
from toolbelt.core import sessions

_T = TypeVar("_T")

# How many sessions one statement forgets: others write between two of them.
AT_ONCE = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A session as it is kept: whose it is, what it has, since when, and when that last changed."""

    agent: str
    session: sessions.Session
    created: dt.datetime
    changed: dt.datetime


def change(
    agent_id: int,
    key: str,
    apply: Callable[[sessions.Session], tuple[_T, sessions.Session | None]],
) -> _T:
    """Show ``apply`` the session under the lock of its row, and keep the one that it gives, if it gives one.

    Changes of one session go one after the other, also the first two; those of other sessions go on beside them.
    """
    with transaction.atomic():
        row, is_new = models.AgentSession.objects.select_for_update(of=("self",)).get_or_create(
            agent_id=agent_id, key=key
        )
        answer, wanted = apply(value(key, row.loadout, row.state))
        if wanted is not None:
            row.loadout, row.state = wanted.loadout, state(wanted)
            row.save()
        elif is_new:
            # It was only made to have something to lock.
            row.delete()
    return answer


def page(agent_id: int | None, offset: int, limit: int) -> tuple[list[Kept], int]:
    """Give a page of the sessions, of one agent or of all, the last changed first; and how many there are."""
    rows = models.AgentSession.objects.order_by("-changed", "-id")
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    found = rows.select_related("agent")[offset : offset + limit]
    return [_kept(row) for row in found], rows.count()


def live(agent: str, since: dt.datetime, most: int) -> tuple[list[sessions.Session], int]:
    """Give the sessions of the agent that loaded something or called a tool since then, the last ones first and at
    most so many; and how many there are. One that only called has loaded nothing.
    """
    changed = models.AgentSession.objects.filter(agent__key=agent, changed__gte=since)
    called = models.CallRecord.objects.filter(agent=agent, at__gte=since).exclude(session="")
    keys = dict.fromkeys(changed.order_by("-changed").values_list("key", flat=True))
    keys.update(dict.fromkeys(called.order_by().values_list("session", flat=True).distinct()))
    shown = list(keys)[:most]
    kept = {
        row.key: value(row.key, row.loadout, row.state)
        for row in models.AgentSession.objects.filter(agent__key=agent, key__in=shown)
    }
    return [kept.get(key) or sessions.Session(key=key) for key in shown], len(keys)


def live_of(agents: Collection[str], since: dt.datetime) -> dict[str, int]:
    """Say how many sessions of each of these agents loaded something or called a tool since then."""
    changed = models.AgentSession.objects.filter(agent__key__in=agents, changed__gte=since)
    called = models.CallRecord.objects.filter(agent__in=agents, at__gte=since).exclude(session="")
    found: dict[str, set[str]] = {}
    pairs = [
        *changed.order_by().values_list("agent__key", "key"),
        *called.order_by().values_list("agent", "session").distinct(),
    ]
    for agent, key in pairs:
        found.setdefault(agent, set()).add(key)
    return {agent: len(keys) for agent, keys in found.items()}


def find(agent_id: int, key: str) -> Kept | None:
    """Give one session, None where nothing is kept of it."""
    row = models.AgentSession.objects.filter(agent_id=agent_id, key=key).select_related("agent").first()
    return _kept(row) if row is not None else None


def forget(
    agent_id: int, key: str, check: Callable[[sessions.Session], None] = lambda held: None
) -> Kept | None:
    """Forget a session, and give what it was; None where nothing was kept of it.

    ``check`` is shown the session under the lock of its row; what it raises keeps the session.
    """
    with transaction.atomic():
        rows = models.AgentSession.objects.filter(agent_id=agent_id, key=key)
        row = rows.select_related("agent").select_for_update(of=("self",)).first()
        if row is None:
            return None
        was = _kept(row)
        check(was.session)
        row.delete()
    return was


def prune(before: dt.datetime) -> int:
    """Forget the sessions that were last changed before this; say how many."""
    forgotten = 0
    while True:
        rows = models.AgentSession.objects.filter(changed__lt=before)
        oldest = list(rows.order_by("changed").values_list("pk", flat=True)[:AT_ONCE])
        if not oldest:
            return forgotten
        # The age once more: one of them may have been changed since.
        forgotten += models.AgentSession.objects.filter(pk__in=oldest, changed__lt=before).delete()[0]


def value(key: str, loadout: str, kept: str | Mapping[str, Any]) -> sessions.Session:
    """Read a session from its row; what cannot be understood in its state is passed over."""
    document = json.loads(kept) if isinstance(kept, str) else kept
    changes = document.get("changes") if isinstance(document, Mapping) else None
    read = (_change(one) for one in changes) if isinstance(changes, list) else ()
    return sessions.Session(
        key=key,
        loadout=loadout,
        by_agent=isinstance(document, Mapping) and document.get("by_agent") is True,
        changes=tuple(one for one in read if one is not None),
    )


def state(session: sessions.Session) -> dict[str, Any]:
    """Write what the session's row keeps of it, as a document."""
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
    }


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


def _kept(row: models.AgentSession) -> Kept:
    return Kept(
        agent=row.agent.key,
        session=value(row.key, row.loadout, row.state),
        created=row.created,
        changed=row.changed,
    )
