"""How is a change taken back? By a change of its own, after comparing with what is so now.

What the entry left must still be so; if somebody changed it since, errors.Stale says what was, what the entry left,
and what is. Undoing is audited like any change, and can itself be undone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from toolbelt import conf
from toolbelt.control import actors, endings, entries, guards, ordering, roles, sessions, switches, writing
from toolbelt.core import errors, grants
from toolbelt.store import audit, clock, snapshots
from toolbelt.store import entries as rows


def act_of(entry: int) -> list[audit.Entry]:
    """List what was done in the same act as this entry (its batch, else itself), newest first, but for what is
    undone already. Raises errors.NotFound.
    """
    done = audit.find(entry)
    if done is None:
        raise errors.NotFound("change", str(entry))
    if done.batch is None:
        return [done]
    return [one for one in audit.of_batch(done.batch) if one.undone is None]


def undo(
    actor: actors.Actor, entry: int, *, reason: str = "", batch: uuid.UUID | None = None
) -> writing.Change:
    """Take back what the audit entry with this id did. Undoing counts as confirming."""
    with writing.begin():
        done = audit.find(entry)
        if done is None:
            raise errors.NotFound("change", str(entry))
        family, _, act = done.action.partition(".")
        write = _WAYS.get(done.action) or _WAYS.get(family) or _WAYS.get(act) or _changed
        return write(actor, done, reason, batch)


def undo_act(actor: actors.Actor, entry: int, *, reason: str = "") -> writing.Change:
    """Take back all that was done in the same act as this entry, last first: all of it, or nothing.

    What was undone of it already stays so. The entries of the undoing share a batch, so it can be undone as one.
    """
    with writing.begin():
        act = act_of(entry)
        if not act:
            return writing.Change(entry=None, before=None, after=None)
        agent = act[0].subject_key if act[0].subject_kind == "agent" else None
        before = snapshots.find(agent, None) if agent else None
        batch = writing.new_batch()
        changes = [undo(actor, one.id, reason=reason, batch=batch) for one in act]
        effect = None
        if before is not None and agent in rows.names("agent"):
            after = snapshots.find(str(agent), None)
            effect = guards.effect(before.catalog, before.agent, after.agent)
    return writing.Change(entry=changes[-1].entry, before=None, after=None, effect=effect)


def _switched(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    write = switches.flip if done.action.startswith("switch.") else switches.override
    now = grants.said(endings.find(done.subject_key).agent, done.key)
    if now != done.after:
        what = f"The {done.action.partition('.')[0]} of {done.key} for {done.subject_key}"
        raise errors.Stale(what, done.after, now, done.before)
    end, back = grants.end(done.before), grants.is_on(done.before)
    if end is not None and end.at <= clock.now():
        # What would be over by now is what it became then.
        back, end = end.then, None
    return write(
        actor,
        done.subject_key,
        done.key,
        back,
        ends=end,
        reason=reason,
        confirm=True,
        batch=batch,
        undoes=done.id,
    )


def _created(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    now = entries.read(done.subject_kind, done.subject_key)
    if now != done.after:
        raise errors.Stale(f"{done.subject_kind} {done.subject_key}", done.after, now)
    return entries.remove(
        actor, done.subject_kind, done.subject_key, reason=reason, batch=batch, undoes=done.id
    )


def _removed(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    try:
        now = entries.read(done.subject_kind, done.subject_key)
    except errors.NotFound:
        entry = {key: value for key, value in done.before.items() if key != entries.PLACE}
        change = entries.put(actor, done.subject_kind, entry, reason=reason, batch=batch, undoes=done.id)
        if entries.PLACE in done.before:
            ordering.restore(done.subject_kind, done.subject_key, done.before[entries.PLACE])
        return change
    raise errors.Stale(f"{done.subject_kind} {done.subject_key}", None, now)


def _changed(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    return entries.change(
        actor,
        done.subject_kind,
        done.subject_key,
        done.before,
        was=done.after,
        reason=reason,
        confirm=True,
        batch=batch,
        undoes=done.id,
    )


def _ordered(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    """Put them back into their order; those that are gone by now have no place any more."""
    there = set(rows.names(done.subject_kind))
    before, after = ([name for name in side["order"] if name in there] for side in (done.before, done.after))
    return ordering.put(
        actor, done.subject_kind, before, was=after, reason=reason, batch=batch, undoes=done.id
    )


def _equipped(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    return sessions.equip(
        actor,
        done.subject_key,
        done.key,
        done.before or "",
        was=done.after or "",
        reason=reason,
        batch=batch,
        undoes=done.id,
    )


def _named(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    return roles.name_operators(
        actor,
        done.subject_key,
        done.before["operators"],
        was=done.after["operators"],
        reason=reason,
        batch=batch,
        undoes=done.id,
    )


def _over(actor: actors.Actor, done: audit.Entry, reason: str, batch: uuid.UUID | None) -> writing.Change:
    raise errors.Refused(
        f"{done.action} cannot be taken back: {_INSTEAD[done.action].format(command=conf.COMMAND)}."
    )


# What cannot be taken back, and what can be done in its place.
_INSTEAD = {
    "token.issue": "revoke the token",
    "token.revoke": "issue another token",
    "user.roles": "give the role, or take it: {command} role",
    "session.evict": "the agent loads again what it needs",
    "switch.end": "set the switch again, for as long as it is needed",
    "override.end": "set the override again, for as long as it is needed",
}
_Way = Callable[[actors.Actor, audit.Entry, str, uuid.UUID | None], writing.Change]
# By the action, its family, or its act.
_WAYS: dict[str, _Way] = {
    "switch.end": _over,
    "override.end": _over,
    "switch": _switched,
    "override": _switched,
    "create": _created,
    "remove": _removed,
    "order": _ordered,
    "token": _over,
    "user.roles": _over,
    "agent.operators": _named,
    "session.equip": _equipped,
    "session.evict": _over,
}
