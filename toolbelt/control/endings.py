"""How is it written down that a switch or an override is over? (semantics: Revisions)

Nobody has to: whoever asks compares the end with the time, so it is over at its second, whether or not a worker runs.
But the log shall tell of it. So whoever writes for the agent next writes first what is over, as of the moment of its
end; a server does it by itself, in a thread of its own, and so does ``manage.py end_grants``.
"""

from __future__ import annotations

import contextlib
import threading

import structlog
from django.db import connections

from toolbelt.control import actors, writing
from toolbelt.core import errors
from toolbelt.core import grants as values
from toolbelt.store import audit, clock, ends, grants, snapshots

SYSTEM = actors.Actor(name="system", via="system")
# How long to wait at most for the next end: another process may have written an earlier one meanwhile.
SECONDS_BETWEEN_LOOKS = 15.0

_log = structlog.get_logger(__name__)
_stopping: threading.Event | None = None


def find(agent: str) -> snapshots.Found:
    """Find the agent in the transaction of a write, with what is over written down. Raises errors.NotFound."""
    found = snapshots.find(agent, None)
    if not found.over:
        return found
    _write(found)
    return snapshots.find(agent, None)


def write_due() -> int:
    """Write down all that is over by now; say how much it was."""
    written = 0
    for agent in ends.due(clock.now()):
        # Removed since it was found: the other agents' ends are written all the same.
        with contextlib.suppress(errors.NotFound), writing.begin():
            found = snapshots.find(agent, None)
            _write(found)
            written += len(found.over)
    return written


def unrecorded(agent: str = "") -> list[audit.Entry]:
    """Give the entries by which it would now be written down what is over, of one agent or of all; what ended last
    comes first. They have no id yet (0), and nothing is written.
    """
    found = []
    for one in ends.over(clock.now(), agent):
        family = one.family
        entry = audit.Entry(
            id=0,
            at=one.end.at,
            actor=SYSTEM.name,
            via=SYSTEM.via,
            action=f"{family}.end",
            subject_kind="agent",
            subject_key=one.agent,
            key=one.key,
            before=values.with_end(one.on, one.end),
            after=one.end.then,
            reason="",
            batch=None,
            undoes=None,
            undone=None,
        )
        found.append(entry)
    return found


def start() -> None:
    """Write down from now on what is over, in a thread of its own, until :func:`stop`. For servers."""
    global _stopping
    if _stopping is None:
        _stopping = threading.Event()
        threading.Thread(target=_keep_writing, args=[_stopping], name="toolbelt-ends", daemon=True).start()


def stop() -> None:
    """Let the thread come to its end; what it has begun to write, it writes. Nobody has to wait for it."""
    global _stopping
    if _stopping is not None:
        _stopping.set()
        _stopping = None


def _write(found: snapshots.Found) -> None:
    for key, end in found.over.items():
        family = "switch" if key in found.written.switches else "override"
        grants.write("switch" if family == "switch" else "override", found.agent_id, key, end.then)
        with audit.dated(end.at):
            audit.record(
                actor=SYSTEM.name,
                via=SYSTEM.via,
                action=f"{family}.end",
                subject_kind="agent",
                subject_key=found.agent.key,
                key=key,
                before=values.said(found.written, key),
                after=end.then,
            )


def _keep_writing(stopping: threading.Event) -> None:
    # Not at once: a server that begins has other things to do, and what is over is over without this.
    seconds = SECONDS_BETWEEN_LOOKS
    while not stopping.wait(seconds):
        seconds = _seconds_to_wait()


def _seconds_to_wait() -> float:
    """Write what is over, and say how long there is nothing more to write."""
    try:
        write_due()
        now = clock.now()
        soonest = min(ends.next_ends(now).values(), default=None)
        left = SECONDS_BETWEEN_LOOKS if soonest is None else (soonest - now).total_seconds()
        return min(max(left, 0.1), SECONDS_BETWEEN_LOOKS)
    except Exception:
        _log.exception("ends of grants not written")
        return SECONDS_BETWEEN_LOOKS
    finally:
        connections.close_all()
