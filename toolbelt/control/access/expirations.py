"""Recording expired switches, overrides and blocks in the audit log (docs/concepts.md: Revisions).

An expiry needs no record to take effect: whenever a switch or a block is read, its expiry is compared with the time.
But the log should contain it. Writers therefore record expiries of an agent or an entry before they change it, with the
time of the expiry; a server does so in a background thread, and so does ``manage.py end_grants``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from toolbelt.control import repeating, writing
from toolbelt.core import errors
from toolbelt.core import grants as values
from toolbelt.store import audit, audit_writing, clock, expiry, grants, snapshots

SYSTEM = writing.Actor(name="system", via="system", kind="clock")
# The maximum time to wait for the next expiry: another process may have set an earlier one meanwhile.
MAX_POLL_SECONDS = 15.0

_UNBLOCKED: Mapping[str, Any] = {"blocked": None, "block_ends": None}


def find(agent: str) -> snapshots.StoredState:
    """Return the agent in the transaction of a write, with its expiries recorded; raise errors.NotFound."""
    current = snapshots.find(agent, None)
    if not current.expired:
        return current
    _record(current)
    return snapshots.find(agent, None)


def record_due() -> int:
    """Record everything that has expired; return the number of expiries."""
    written = 0
    for agent in expiry.due(clock.now()):
        # The agent may have been removed meanwhile; the others are still recorded.
        with contextlib.suppress(errors.NotFound), writing.begin():
            current = snapshots.find(agent, None)
            _record(current)
            written += len(current.expired)
    if expiry.ended_blocks(clock.now()):
        with writing.begin():
            written += end_blocks()
    return written


def end_blocks(kind: str = "", name: str = "") -> int:
    """Record the blocks that have ended, of one entry or of all, in the transaction of a write; return their number."""
    ended = expiry.ended_blocks(clock.now(), kind, name)
    for block in ended:
        expiry.unblock(block)
        with audit_writing.dated(block.at):
            writing.record(
                writing.Write(actor=SYSTEM),
                block.kind,
                block.name,
                action="block.end",
                before=_blocked(block),
                after=_UNBLOCKED,
            )
    return len(ended)


def unrecorded(agent: str = "") -> list[audit.Entry]:
    """Return the audit entries that would now record expiries, of one agent or of all, the latest first. They have no
    id yet (0), and nothing is written.
    """
    result = []
    for item in expiry.expired(clock.now(), agent):
        family = item.family
        entry = audit.Entry(
            id=0,
            at=item.end.at,
            actor=SYSTEM.name,
            via=SYSTEM.via,
            action=f"{family}.end",
            subject_kind="agent",
            subject_key=item.agent,
            key=item.key,
            before=values.with_end(item.on, item.end),
            after=item.end.then,
            reason="",
            batch=None,
            undoes=None,
            undone=None,
            actor_kind=SYSTEM.kind,
        )
        result.append(entry)
    if not agent:
        result += [
            audit.Entry(
                id=0,
                at=block.at,
                actor=SYSTEM.name,
                via=SYSTEM.via,
                action="block.end",
                subject_kind=block.kind,
                subject_key=block.name,
                key="",
                before=_blocked(block),
                after=_UNBLOCKED,
                reason="",
                batch=None,
                undoes=None,
                undone=None,
                actor_kind=SYSTEM.kind,
            )
            for block in expiry.ended_blocks(clock.now())
        ]
        result.sort(key=lambda entry: entry.at, reverse=True)
    return result


def _blocked(block: expiry.EndedBlock) -> dict[str, Any]:
    return {"blocked": True, "block_ends": values.format_time(block.at)}


def _record(current: snapshots.StoredState) -> None:
    for key, end in current.expired.items():
        family = "switch" if key in current.written.switches else "override"
        grants.write("switch" if family == "switch" else "override", current.agent_id, key, end.then)
        with audit_writing.dated(end.at):
            writing.record(
                writing.Write(actor=SYSTEM),
                "agent",
                current.agent.key,
                action=f"{family}.end",
                key=key,
                before=values.switch_state(current.written, key),
                after=end.then,
            )


def _seconds_to_wait() -> float:
    """Record expiries; return the seconds until there may be more."""
    record_due()
    now = clock.now()
    ends = (*expiry.next_ends(now).values(), expiry.next_block_end(now))
    soonest = min((at for at in ends if at is not None), default=None)
    remaining = MAX_POLL_SECONDS if soonest is None else (soonest - now).total_seconds()
    return min(max(remaining, 0.1), MAX_POLL_SECONDS)


_thread = repeating.Repeating(
    "toolbelt-expirations", _seconds_to_wait, MAX_POLL_SECONDS, "expired grants not recorded"
)
start, stop = _thread.start, _thread.stop
