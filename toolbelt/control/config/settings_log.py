"""Settings that decide on calls, in the audit log: a server records them at its start if they have changed.

They are no rows, so nothing else says what they were when a call was made.
"""

from __future__ import annotations

import threading

import structlog
from django import db

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.core import agents
from toolbelt.store import audit

KIND, KIND_LOADOUTS = "settings", "TOOLBELT_KIND_LOADOUTS"
SYSTEM = writing.by("toolbelt", via="system")

_log = structlog.get_logger(__name__)


def start() -> None:
    """Record the settings of this process in a thread of its own, because a server need not wait for its database."""
    threading.Thread(target=_record, name="toolbelt-settings", daemon=True).start()


def record() -> int | None:
    """Record the settings if they are not those that were recorded last; return the audit entry."""
    after = dict(conf.KIND_LOADOUTS)
    if _last() == after:
        return None
    with writing.begin():
        # Another process may have been faster.
        before = _last()
        if before == after:
            return None
        return writing.record(
            SYSTEM, KIND, KIND_LOADOUTS, action="settings.change", before=before, after=after
        )


def _last() -> dict[str, str]:
    last = audit.newest(KIND, [KIND_LOADOUTS]).get(KIND_LOADOUTS)
    return dict(agents.KIND_LOADOUTS if last is None else last.after)


def _record() -> None:
    try:
        record()
    except Exception:
        _log.exception("settings not recorded")
    finally:
        db.connections.close_all()
