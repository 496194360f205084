"""Undoing changes: a change of its own, after a comparison with the current state.

The state that the change left must still be there; if it has changed since, errors.Stale states what was seen and what
is there now. Undoing is audited like any change, and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable

from toolbelt import conf
from toolbelt.control import guards, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.agents import sessions
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.people import roles
from toolbelt.core import errors, grants
from toolbelt.store import audit, clock, snapshots
from toolbelt.store import entries as rows


def batch_of(entry: int) -> list[audit.Entry]:
    """Return the entries of the same batch as this one (or only itself), newest first, without those that are already
    undone. Raise errors.NotFound.
    """
    done = audit.find(entry)
    if done is None:
        raise errors.NotFound("change", str(entry))
    if done.batch is None:
        return [done]
    return [entry_ for entry_ in audit.of_batch(done.batch) if entry_.undone is None]


def undo(write: writing.Write, entry: int) -> writing.Change:
    """Undo the change with this audit entry id. Undoing counts as confirmation."""
    with writing.begin():
        done = audit.find(entry)
        if done is None:
            raise errors.NotFound("change", str(entry))
        family, _, act = done.action.partition(".")
        undo_change = _UNDO.get(done.action) or _UNDO.get(family) or _UNDO.get(act) or _changed
        return undo_change(write.replace(confirm=True, undoes=done.id), done)


def undo_batch(write: writing.Write, entry: int) -> writing.Change:
    """Undo all changes of the same batch as this entry, the last first: all of them, or none.

    Those that are already undone stay so. The new entries share a batch, so that they can be undone together.
    """
    with writing.begin():
        batch = batch_of(entry)
        if not batch:
            return writing.Change(entry=None, before=None, after=None)
        agent = batch[0].subject_key if batch[0].subject_kind == "agent" else None
        before = snapshots.find(agent, None) if agent else None
        write = write.in_batch()
        changes = [undo(write, item.id) for item in batch]
        effect = None
        if before is not None and agent in rows.names("agent"):
            after = snapshots.find(str(agent), None)
            effect = guards.effect(before.catalog, before.agent, after.agent)
    return writing.Change(entry=changes[-1].entry, before=None, after=None, effect=effect)


def _switched(write: writing.Write, done: audit.Entry) -> writing.Change:
    flip = switches.flip if done.action.startswith("switch.") else switches.override
    now = grants.switch_state(expirations.find(done.subject_key).agent, done.key)
    if now != done.after:
        what = f"The {done.action.partition('.')[0]} of {done.key} for {done.subject_key}"
        raise errors.Stale(what, done.after, now, done.before)
    end, value = grants.expiry_of(done.before), grants.is_on(done.before)
    if end is not None and end.at <= clock.now():
        # If the earlier value would have expired by now, its later value is restored.
        value, end = end.then, None
    return flip(write, done.subject_key, done.key, value, ends=end)


def _created(write: writing.Write, done: audit.Entry) -> writing.Change:
    now = entries.read(done.subject_kind, done.subject_key)
    if now != done.after:
        raise errors.Stale(f"{done.subject_kind} {done.subject_key}", done.after, now)
    return entries.remove(write, done.subject_kind, done.subject_key)


def _removed(write: writing.Write, done: audit.Entry) -> writing.Change:
    try:
        now = entries.read(done.subject_kind, done.subject_key)
    except errors.NotFound:
        entry = {key: value for key, value in done.before.items() if key != entries.PLACE}
        change = entries.put(write, done.subject_kind, entry)
        if entries.PLACE in done.before:
            ordering.restore(done.subject_kind, done.subject_key, done.before[entries.PLACE])
        return change
    raise errors.Stale(f"{done.subject_kind} {done.subject_key}", None, now)


def _changed(write: writing.Write, done: audit.Entry) -> writing.Change:
    return entries.change(write, done.subject_kind, done.subject_key, done.before, was=done.after)


def _ordered(write: writing.Write, done: audit.Entry) -> writing.Change:
    """Restore the order; entries that no longer exist are skipped."""
    existing = set(rows.names(done.subject_kind))
    before, after = (
        [name for name in side["order"] if name in existing] for side in (done.before, done.after)
    )
    return ordering.set_order(write, done.subject_kind, before, was=after)


def _equipped(write: writing.Write, done: audit.Entry) -> writing.Change:
    return sessions.equip(write, done.subject_key, done.key, done.before or "", was=done.after or "")


def _named(write: writing.Write, done: audit.Entry) -> writing.Change:
    return roles.set_operators(write, done.subject_key, done.before["operators"], was=done.after["operators"])


def _refuse(write: writing.Write, done: audit.Entry) -> writing.Change:
    raise errors.Refused(
        f"{done.action} cannot be undone: {_INSTEAD[done.action].format(command=conf.COMMAND)}."
    )


# What cannot be undone, and what to do instead.
_INSTEAD = {
    "token.issue": "revoke the token",
    "token.revoke": "issue another token",
    "user.roles": "assign or remove the role: {command} role",
    "user.create": "deactivate the user",
    "user.activate": "deactivate the user",
    "user.deactivate": "activate the user",
    "session.evict": "the agent can load its tools again",
    "switch.end": "set the switch again",
    "override.end": "set the override again",
}
_Undo = Callable[[writing.Write, audit.Entry], writing.Change]
# By the action, its family, or its last part.
_UNDO: dict[str, _Undo] = {
    "switch.end": _refuse,
    "override.end": _refuse,
    "switch": _switched,
    "override": _switched,
    "create": _created,
    "remove": _removed,
    "order": _ordered,
    "token": _refuse,
    "user": _refuse,
    "user.create": _refuse,
    "agent.operators": _named,
    "session.equip": _equipped,
    "session.evict": _refuse,
}
