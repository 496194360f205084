"""What has a conversation loaded, and how is that changed so that concurrent changes lose nothing?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import transaction

from toolbelt import models
from toolbelt.core import sessions

_T = TypeVar("_T")


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


def value(key: str, loadout: str, kept: str | Mapping[str, Any]) -> sessions.Session:
    """Read a session from its row; what cannot be understood in its state is passed over."""
    document = json.loads(kept) if isinstance(kept, str) else kept
    changes = document.get("changes") if isinstance(document, Mapping) else None
    read = (_change(one) for one in changes) if isinstance(changes, list) else ()
    return sessions.Session(key=key, loadout=loadout, changes=tuple(one for one in read if one is not None))


def state(session: sessions.Session) -> dict[str, Any]:
    """Write what the session's row keeps of it, as a document."""
    return {
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
        ]
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
