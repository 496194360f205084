"""Undoing changes: an undo is itself a change, made after a comparison with the current state.

Only what was decided can be undone. What was observed (:mod:`toolbelt.core.facts`) is as its source shows it: the way
back is the review of the tool, or its source.

The state that the change left must still be there; if it has changed since, errors.Stale states the value
seen and the current value. Undoing is audited like any change, and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable

from toolbelt import conf
from toolbelt.control import guards, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.agents import session_changes
from toolbelt.control.catalog import entries, ordering, purging
from toolbelt.control.people import roles
from toolbelt.control.servers import approvals
from toolbelt.core import errors, facts, grants
from toolbelt.store import audit, clock, snapshots
from toolbelt.store import entries as rows


def batch_of(entry_id: int) -> list[audit.Entry]:
    """Return the entries of the same batch as this one (or only itself), newest first, without those that are already
    undone, and without those that record what was observed. Raise errors.NotFound.
    """
    return [entry for entry in _whole_batch(entry_id) if not entry.is_fact]


def is_fact(entry_id: int) -> bool:
    """Return whether this audit entry records what was observed, so that it cannot be undone."""
    entry = audit.find(entry_id)
    return entry is not None and entry.is_fact


def undo(write: writing.Write, entry_id: int) -> writing.Change:
    """Undo the change with this audit entry id. Undoing counts as confirmation."""
    with writing.begin():
        entry = audit.find(entry_id)
        if entry is None:
            raise errors.NotFound("change", str(entry_id))
        _refuse_fact(entry)
        family, _, act = entry.action.partition(".")
        undo_change = _UNDO.get(entry.action) or _UNDO.get(family) or _UNDO.get(act) or _changed
        return undo_change(write.replace(confirm=True, undoes=entry.id), entry)


def undo_batch(write: writing.Write, entry_id: int) -> writing.Change:
    """Undo all changes of the same batch as this entry, the last first: all of them, or none.

    Those that are already undone stay so, and what was observed stays as it is: the result names what was left out.
    Raise Refused if everything was observed. The new entries share a batch, so that they can be undone together.
    """
    with writing.begin():
        whole = _whole_batch(entry_id)
        batch = [entry for entry in whole if not entry.is_fact]
        left_out = tuple(entry.id for entry in whole if entry.is_fact)
        if not batch and left_out:
            _refuse_fact(whole[0])
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
    return writing.Change(entry=changes[-1].entry, before=None, after=None, effect=effect, left_out=left_out)


def _whole_batch(entry_id: int) -> list[audit.Entry]:
    entry = audit.find(entry_id)
    if entry is None:
        raise errors.NotFound("change", str(entry_id))
    if entry.batch is None:
        return [entry]
    return [other for other in audit.of_batch(entry.batch) if other.undone is None]


def _refuse_fact(entry: audit.Entry) -> None:
    """Raise Refused if the entry records what was observed, or if it undid that (before this was refused)."""
    undone: audit.Entry | None = entry
    while undone is not None and not undone.is_fact:
        undone = audit.find(undone.undoes) if undone.undoes is not None else None
    if undone is not None and undone.action not in _ALTERNATIVES:
        ways = {
            "tool": "approve or reject the tool in the review",
            "toolkit": "change it in the plugin's code",
        }
        way = ways.get(undone.subject_kind, "refresh or restart the plugin")
        raise errors.Refused(
            f"What was observed of {undone.subject_key} cannot be undone, because no operator decided it: {way}."
        )


def _switched(write: writing.Write, entry: audit.Entry) -> writing.Change:
    flip = switches.flip if entry.action.startswith("switch.") else switches.override
    now = grants.switch_state(expirations.find(entry.subject_key).agent, entry.key)
    if now != entry.after:
        subject = f"The {entry.action.partition('.')[0]} of {entry.key} for {entry.subject_key}"
        by = writing.author(write, "agent", entry.subject_key, entry.key)
        raise errors.Stale(subject, entry.after, now, entry.before, by=by)
    end, value = grants.expiry_of(entry.before), grants.is_on(entry.before)
    if end is not None and end.at <= clock.now():
        # If the earlier value would have expired by now, its later value is restored.
        value, end = end.then, None
    return flip(write, entry.subject_key, entry.key, value, ends=end)


def _created(write: writing.Write, entry: audit.Entry) -> writing.Change:
    return entries.remove(write, entry.subject_kind, entry.subject_key, was=entry.after)


def _removed(write: writing.Write, entry: audit.Entry) -> writing.Change:
    try:
        now = entries.read(entry.subject_kind, entry.subject_key)
    except errors.NotFound:
        removed = {key: value for key, value in entry.before.items() if key != entries.POSITION}
        change = entries.put(write, entry.subject_kind, removed)
        if entries.POSITION in entry.before:
            ordering.restore(entry.subject_kind, entry.subject_key, entry.before[entries.POSITION])
        return change
    by = writing.author(write, entry.subject_kind, entry.subject_key)
    raise errors.Stale(f"{entry.subject_kind} {entry.subject_key}", None, now, by=by)


def _changed(write: writing.Write, entry: audit.Entry) -> writing.Change:
    """Restore the fields, without those that only an observation sets. Raise Refused if that would take a tool out of
    review: only a decision on its texts may.
    """
    kind, name, before, after = entry.subject_kind, entry.subject_key, entry.before, entry.after
    if entry.action not in _OWN_RETIREMENT:
        before, after = facts.decided(kind, before), facts.decided(kind, after)
    restores_texts = not facts.LISTED_FIELDS.isdisjoint(before)
    # Without the hash of a version, a tool that counts as seen is held to nothing.
    restores_seen = "seen" in before and not before.get("approved")
    is_guarded = kind == "tool" and (restores_texts or restores_seen) and approvals.is_held(name)
    change = entries.change(write, kind, name, before, was=after)
    if is_guarded and not approvals.is_held(name):
        raise errors.Refused(
            f"{name} awaits review, and undoing this would skip it: approve or reject it there."
        )
    return change


def _ordered(write: writing.Write, entry: audit.Entry) -> writing.Change:
    """Restore the order; entries that no longer exist are skipped."""
    existing = set(rows.names(entry.subject_kind))
    before, after = (
        [name for name in side["order"] if name in existing] for side in (entry.before, entry.after)
    )
    return ordering.set_order(write, entry.subject_kind, before, was=after)


def _equipped(write: writing.Write, entry: audit.Entry) -> writing.Change:
    return session_changes.equip(
        write, entry.subject_key, entry.key, entry.before or "", was=entry.after or ""
    )


def _purged(write: writing.Write, entry: audit.Entry) -> writing.Change:
    kind: purging.Kind = "tool" if entry.subject_kind == "tool" else "toolkit"
    return purging.restore(write, kind, entry.subject_key, entry.before, entry.after)


def _operators_set(write: writing.Write, entry: audit.Entry) -> writing.Change:
    return roles.set_operators(
        write, entry.subject_key, entry.before["operators"], was=entry.after["operators"]
    )


def _refuse(write: writing.Write, entry: audit.Entry) -> writing.Change:
    raise errors.Refused(
        f"{entry.action} cannot be undone: {_ALTERNATIVES[entry.action].format(command=conf.COMMAND)}."
    )


# What cannot be undone, and what to do instead.
_ALTERNATIVES = {
    "connection.allow": "revoke the connection",
    "connection.revoke": "sign in again with the client",
    "sign_in.begin": "sign out on the server's page",
    "sign_in.end": "sign in again on the server's page",
    "token.issue": "revoke the token",
    "token.revoke": "issue another token",
    "user.roles": "assign or remove the role: {command} role",
    "user.rights": "give the user a group at the provider that has a role",
    "user.create": "deactivate the user",
    "user.link": "deactivate the user",
    "user.factor_add": "remove the factor from your account",
    "user.factor_rename": "rename it again",
    "user.factor_remove": "add the factor again",
    "user.factor_reset": "the user can set up a second factor again",
    "user.factor_lock": "it ends after a quarter of an hour",
    "user.invite": "withdraw the link",
    "user.password_link": "withdraw the link",
    "user.unlink": "make another link",
    "user.logout": "the user can log in again",
    "user.recovery_codes": "make new codes again",
    "user.password": "set another password: {command} user password",
    "user.password_remove": "the user logs in with the provider",
    "user.activate": "deactivate the user",
    "user.deactivate": "activate the user",
    "session.evict": "the agent can load its tools again",
    "session.clear": "the next call that brings the label sets it again",
    "alert.test": "it was sent",
    "approval.approve": "revoke it if it holds for a while, block the tool, or add a rule that denies the call",
    "approval.revoke": "approve the call again when it is asked about",
    "approval.reject": "the agent can call again once the rejection has passed",
    "approval.edit": "edit the call again, or reject it",
    "switch.end": "set the switch again",
    "override.end": "set the override again",
    "block.end": "block it again",
    "settings.change": "change the setting, and restart the servers",
    "draft.save": "discard the draft",
    "draft.discard": "make the change again",
    "draft.end": "make the change again",
    "draft.observe": "stop observing it",
    "draft.schedule": "stop it on the draft's page",
    "draft.extend": "stop observing it",
    "draft.rollout": "stop it on the draft's page",
    "draft.revert": "roll it out again on the draft's page",
    "draft.stop": "begin again on the draft's page",
}
# An operator retires and restores what no plugin lists.
_OWN_RETIREMENT = frozenset({"tool.retire", "tool.restore"})
_Undo = Callable[[writing.Write, audit.Entry], writing.Change]
# By the action, its family, or its last part.
_UNDO: dict[str, _Undo] = {
    "switch.end": _refuse,
    "override.end": _refuse,
    "block.end": _refuse,
    "settings.change": _refuse,
    "switch": _switched,
    "override": _switched,
    "create": _created,
    "remove": _removed,
    "order": _ordered,
    "purge": _purged,
    "connection": _refuse,
    "sign_in": _refuse,
    "token": _refuse,
    "alert": _refuse,
    "approval": _refuse,
    "draft": _refuse,
    "draft.end": _refuse,
    "user": _refuse,
    "user.create": _refuse,
    "agent.operators": _operators_set,
    "session.equip": _equipped,
    "session.evict": _refuse,
    "session.clear": _refuse,
}
