"""Creating, changing and removing configured things; every interface writes through this module.

Its vocabulary is the belt's: an *entry* is one agent, toolkit, tool … in the form of a belt, and its problems have the
same paths and messages. The audit log stores only the keys that a change really changes, before and after, so that
undoing compares and restores only those.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from django import db

from toolbelt.control import guards, writing
from toolbelt.control.access import expirations, rolled_out, tools_config
from toolbelt.control.catalog import budget_checks, connection_policy, kept_descriptions, unresolved
from toolbelt.core import agents, belts, conflicts, errors, facts, grants
from toolbelt.core.rules import budgets
from toolbelt.store import clock, entries, faults, holds, snapshots

KINDS_WITH_NAME = frozenset({"category", "plugin", "loadout"})
RETIRED_NOT_REMOVED = frozenset({"plugin", "tool"})
# What operators may change in a toolkit in code; everything else belongs to the code.
OPERATOR_FIELDS = frozenset({"blocked", "block_ends"})
# The field of an entry that lists the tools that it grants to agents.
_TOOL_FIELD = {"toolkit": "members", "sub_app": "tool_names"}
# What the audit log stores of a removed entry besides its keys: its position among those of its kind, from 0.
POSITION = belts.POSITION
Entry = Mapping[str, Any]


class NameTaken(errors.Refused):
    """The name for a new entry is taken by another of the same kind."""


def name_field(kind: str) -> str:
    """Return the field that names an entry: "name" for categories, plugins and loadouts, otherwise "key"."""
    return "name" if kind in KINDS_WITH_NAME else "key"


def read(kind: str, name: str) -> dict[str, Any]:
    """Return the entry as it is stored, without secrets in options; raise errors.NotFound."""
    entry = entries.read(kind, name)
    if entry is None:
        raise errors.NotFound(kind.replace("_", "-"), name, entries.names(kind))
    return entry


def put(
    write: writing.Write,
    kind: str,
    entry: Entry,
    *,
    index: belts.NameIndex | None = None,
    even_archived: bool = False,
) -> writing.Change:
    """Store ``entry`` as a whole: create it, or replace the one with its key.

    Raise Invalid with every problem and its path, and as a flip does, Refused if it would exceed a budget (of the
    agent, or of any that it affects), and ConfirmationRequired for far-reaching effects on an agent, or for a loadout
    that disables what does not exist. What is observed, as a plugin's code is, may exceed budgets.

    ``index`` is the index to check the entry against, if the caller has just read it. ``even_archived``: an archived
    agent may change as well, because only names of tools do.
    """
    with writing.begin():
        name = entry.get(name_field(kind))
        if kind in holds.KINDS and isinstance(name, str):
            expirations.end_blocks(kind, name)
        whole = entries.read(kind, name, with_secrets=True) if isinstance(name, str) else None
        now = belts.withheld(whole)
        before = expirations.find(str(name)) if kind == "agent" and now is not None else None
        entry = belts.restored(kind, entry, whole)
        _check_entry(write, kind, entry, whole, index or name_index())
        catalog_before = None if write.is_observation else budget_checks.catalog_before(kind)
        stored = entries.write(kind, dict(entry))
        old_values, new_values = differences(now, stored)
        if now is not None and not old_values and not new_values:
            return writing.Change(entry=None, before=old_values, after=new_values, result=stored)
        _check_owners(write, kind, str(name), now, stored, new_values)
        if budgets.concerns_all_agents(kind, new_values):
            _refuse_conflicts(kind, str(name))
            budget_checks.refuse_exceeded(catalog_before)
        effect = None
        if before is not None:
            after = snapshots.find(str(name), None)
            effect = guards.check(
                before.catalog,
                before.agent,
                after.agent,
                str(name),
                confirm=write.confirm,
                even_archived=even_archived,
            )
        elif kind == "agent" and write.undoes is None:
            budget_checks.refuse_new(str(name))
        restored = [*kept_descriptions.restored()] if kept_descriptions.is_decided(kind, new_values) else []
        write = write.in_batch() if restored else write
        number = record_change(write, kind, str(name), now, stored)
        for tool in restored:
            put(write, "tool", tool)
    return writing.Change(entry=number, before=old_values, after=new_values, effect=effect, result=stored)


def _check_entry(
    write: writing.Write, kind: str, entry: Entry, whole: Entry | None, index: belts.NameIndex
) -> None:
    """Refuse what may not be written. ``whole`` is what is stored now, with its secrets."""
    now = belts.withheld(whole)
    written = entry.get(name_field(kind)) if kind == "category" else dict(entry)
    if problems := belts.check_entry(_kind(kind), written, index, stored=whole):
        raise errors.Invalid(problems)
    if write.undoes is None and not write.is_observation:
        _refuse_block_end(kind, now, entry)
    if kind == "loadout" and not write.confirm and write.undoes is None:
        unresolved.require_confirmation(now, entry)


def _check_owners(
    write: writing.Write, kind: str, name: str, now: Entry | None, stored: Entry, new_values: Entry
) -> None:
    """Refuse to change what belongs to the code or is observed, and connections that this writer may not change."""
    if not write.is_observation:
        owned = owned_by_code(kind, now, new_values) or _observed(kind, now or stored, stored, new_values)
        if owned:
            raise errors.Invalid(owned)
    if kind == "plugin":
        connection_policy.check_change(write.actor, name, now, stored)


def create(write: writing.Write, kind: str, entry: Entry) -> writing.Change:
    """Store an entry with a new name; raise NameTaken if it exists, and as :func:`put` does.

    Switches and overrides may be given one by one, as in :func:`change`.
    """
    with writing.begin():
        name = entry.get(name_field(kind))
        if isinstance(name, str) and entries.read(kind, name) is not None:
            word = belts.KINDS[_kind(kind)].word
            raise NameTaken(f"{name!r} already exists: change that {word}, or choose another name.")
        if kind == "agent":
            entry = tools_config.merge_single(
                write.actor, agents.Agent(key=str(name)), {name_field(kind): name}, entry
            )
            entry = {key: value for key, value in entry.items() if value is not None}
        return put(write, kind, entry)


def change(
    write: writing.Write,
    kind: str,
    name: str,
    changes: Entry,
    *,
    was: Entry | None = None,
    index: belts.NameIndex | None = None,
) -> writing.Change:
    """Change only the keys in ``changes``; None resets a key to its default.

    A single switch or override of an agent can be changed and compared (``was``) by the key that
    :func:`toolbelt.control.access.tools_config.as_single` gives it. ``was`` holds the keys that the writer saw, with
    their values (None: missing): raise Stale if any of them has changed. Raise as :func:`put` does; ``index`` is the
    same.
    """
    if changes.get(name_field(kind), name) != name:
        path = f"{belts.address(_kind(kind), {name_field(kind): name})}.{name_field(kind)}"
        message = "It cannot be renamed, because others refer to it: create a new one, and remove this one."
        raise errors.Invalid([errors.Problem(path=path, message=message)])
    asked = changes
    try:
        with writing.begin():
            now = read(kind, name)
            refuse_stale(write, kind, name, now, was or {}, changes)
            if kind == "agent" and any(key.startswith(tools_config.SINGLE) for key in changes):
                changes = tools_config.merge_single(write.actor, expirations.find(name).agent, now, changes)
            merged = {**now, **changes}
            if kind == "agent" and "tools_config" in changes and "ends" not in changes:
                merged["ends"] = _remaining_ends(now, merged)
            if "blocked" in changes and "block_ends" not in changes:
                # A new block does not end with the one before.
                merged["block_ends"] = None
            entry = {key: value for key, value in merged.items() if value is not None}
            changed = put(write, kind, entry, index=index)
            if kind == "agent" and changed.entry is None:
                rolled_out.end(
                    write, expirations.find(name).agent, keys=tools_config.keys(asked), fields=asked
                )
    except db.Error as error:
        _hold(write, kind, name, changes, error)
        raise
    if kind in holds.KINDS and "blocked" in changes:
        # Not before it is stored: within a larger transaction, that may still fail.
        db.transaction.on_commit(lambda: holds.release(kind, name))
    return changed


def _hold(write: writing.Write, kind: str, name: str, changes: Entry, error: db.Error) -> None:
    """Hold a stop that could not be stored, in this process; raise errors.NotStored then."""
    fault = None if snapshots.is_trying() else faults.classify(error)
    if kind not in holds.KINDS or "blocked" not in changes or fault is None:
        return
    if not changes["blocked"]:
        # What is stored is not blocked.
        holds.release(kind, name)
        return
    # What cannot be read runs nowhere, and what does not exist cannot be stopped.
    read(kind, name)
    ends = grants.parse_time(changes.get("block_ends"))
    holds.add(kind, name, functools.partial(_stop, write.replace(confirm=True), kind, name, ends), ends=ends)
    raise errors.NotStored(f"The {belts.KINDS[_kind(kind)].word} {name}", fault) from error


def _stop(write: writing.Write, kind: str, name: str, ends: dt.datetime | None) -> None:
    if ends is not None and ends <= clock.now():
        return
    with writing.begin():
        stopped = {"blocked": True, "block_ends": ends and grants.format_time(ends)}
        put(
            write,
            kind,
            {field: value for field, value in {**read(kind, name), **stopped}.items() if value is not None},
        )


def refuse_stale(
    write: writing.Write | None, kind: str, name: str, now: Entry | None, was: Entry, entry: Entry
) -> None:
    """Raise Stale, with every key that differs, if the entry is not as ``was`` states."""
    current = {**(now or {}), **tools_config.as_single(now or {})}
    was = belts.withheld(was)
    stale = {key: current.get(key) for key, seen in was.items() if current.get(key) != seen}
    for key, value in stale.items():
        subject = f"{key} of {belts.KINDS[_kind(kind)].word} {name}"
        # A switch or override is logged by its own key.
        single = key.removeprefix(tools_config.SINGLE) if key.startswith(tools_config.SINGLE) else ""
        by = writing.author(write, kind, name, single, () if single else [key]) if write else ""
        raise errors.Stale(subject, was[key], value, entry.get(key), fields=stale, by=by)


def _remaining_ends(now: Entry, merged: Entry) -> dict[str, Any] | None:
    """Return the expiries of what does not change: a switch that changes has none."""
    old, new = now.get("tools_config") or {}, merged.get("tools_config") or {}
    ends = now.get("ends") or {}
    return {key: end for key, end in ends.items() if key in new and new[key] is old.get(key)} or None


def _refuse_block_end(kind: str, now: Entry | None, entry: Entry) -> None:
    """Raise Invalid for a block that would end in the past, or that has no end yet.

    What was blocked without an end is unblocked by an operator, not by the clock.
    """
    before, ends = now or {}, entry.get("block_ends")
    at = grants.parse_time(ends)
    if at is None or ends == before.get("block_ends"):
        return
    name = entry[name_field(kind)]
    if at <= clock.now():
        message = f"{grants.format_time(at)} is in the past: choose a later time."
    elif before.get("blocked") and not before.get("block_ends"):
        message = f"{name} is already blocked, without an end: unblock it first, or leave out the end."
    else:
        return
    path = f"{belts.address(_kind(kind), dict(entry))}.block_ends"
    raise errors.Invalid([errors.Problem(path=path, message=message)])


def remove(write: writing.Write, kind: str, name: str, *, was: Entry | None = None) -> writing.Change:
    """Remove an agent, toolkit, loadout, sub-app or category that nothing refers to; the audit log keeps the whole
    entry.

    ``was`` is the entry as the writer saw it: raise Stale if it has changed. Tools and plugins are retired or disabled,
    never removed: their switches and history stay. Raise Refused if an agent would exceed a budget because a denial
    disappears.
    """
    if kind in RETIRED_NOT_REMOVED:
        raise errors.Refused(
            f"A {kind} is never removed: {'retire' if kind == 'tool' else 'disable'} {name} instead."
        )
    with writing.begin():
        now = read(kind, name)
        if was is not None and now != belts.withheld(was):
            by = writing.author(write, kind, name)
            raise errors.Stale(f"{belts.KINDS[_kind(kind)].word} {name}", was, now, by=by)
        refuse_while_used(kind, name)
        # The position is stored as well: undoing restores it.
        removed = {**now, POSITION: entries.names(kind).index(name)} if entries.is_ordered(kind) else now
        catalog_before = budget_checks.catalog_before(kind)
        entries.delete(kind, name)
        budget_checks.refuse_exceeded(catalog_before)
        number = writing.record(write, kind, name, action=f"{kind}.remove", before=removed, after=None)
    return writing.Change(entry=number, before=removed, after=None)


def refuse_while_used(kind: str, name: str) -> None:
    """Raise Refused while something refers to this entry, and name it."""
    if users := entries.users(kind, name):
        raise errors.Refused(f"{name} is used by {', '.join(users)}: change that first.")


def _kind(kind: str) -> belts.KindName:
    for name in belts.KINDS:
        if name == kind:
            return name
    raise errors.NotFound("kind of entry", kind, belts.KINDS)


def name_index() -> belts.NameIndex:
    """Return the index to check a single entry against."""
    return belts.NameIndex.of_catalog(snapshots.catalog(), entries.names("agent"))


def differences(now: Entry | None, stored: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keys that differ, with their values before and after (None for a missing key), without secrets in
    options.
    """
    if now is None:
        return {}, dict(belts.withheld(stored))
    keys = [key for key in {**now, **stored} if now.get(key) != stored.get(key)]
    before, after = ({key: side.get(key) for key in keys} for side in (now, stored))
    return belts.withheld(before), belts.withheld(after)


def record_change(write: writing.Write, kind: str, name: str, now: Entry | None, stored: Entry) -> int:
    """Record the change of an entry; return the id of the last audit entry.

    Switches and overrides of an existing agent are recorded key by key, as flips are: each of them can be found and
    undone on its own, whichever way it was written.
    """
    before, after = differences(now, stored)
    flips: list[tuple[str, Any, Any]] = []
    if kind == "agent" and now is not None and not {"tools_config", "ends"}.isdisjoint(after):
        old, new = _flat(now), _flat(stored)
        flips = [(key, old.get(key), new.get(key)) for key in sorted({**old, **new})]
        flips = [flip for flip in flips if flip[1] != flip[2]]
        for side in (before, after):
            side.pop("tools_config", None)
            side.pop("ends", None)
    if flips and (len(flips) > 1 or after):
        write = write.in_batch()
    toolkits = set(entries.names("toolkit")) if flips else set()
    number = 0
    for key, was, on in flips:
        family = "switch" if key in toolkits else "override"
        number = writing.record(
            write,
            kind,
            name,
            action=f"{family}.set" if on is not None else f"{family}.clear",
            key=key,
            before=was,
            after=on,
        )
    if after or now is None:
        number = writing.record(
            write,
            kind,
            name,
            action=write.action or _action(write, kind, before if now is not None else None, after),
            before=None if now is None else before,
            after=after,
        )
    return number


def _action(write: writing.Write, kind: str, before: Entry | None, after: Entry) -> str:
    if write.is_observation:
        return facts.action_of(kind, before, after)
    if before is None:
        return f"{kind}.create"
    if kind == "tool" and "retired" in after:
        return "tool.retire" if after["retired"] else "tool.restore"
    return f"{kind}.change"


def _observed(kind: str, now: Entry, stored: Entry, changed: Entry) -> list[errors.Problem]:
    """Return a problem for each changed field that only an observation sets. An operator retires and restores what no
    plugin lists.
    """
    is_listed = now.get("plugin") or stored.get("plugin")
    if kind == "tool" and (not is_listed or stored.get("kind") == "elicitation"):
        return []
    message = "The source of the tools decides this, so it cannot be set. Block a tool, or turn a plugin off, instead."
    path = belts.address(_kind(kind), dict(stored))
    return [errors.Problem(path=f"{path}.{name}", message=message) for name in facts.observed(kind, changed)]


def _flat(entry: Entry) -> dict[str, Any]:
    """Return the state of each switch and override of an agent's entry, as :func:`grants.switch_state` does."""
    ends = entry.get("ends") or {}
    return {
        key: {"on": on, "ends": ends[key]["at"], "then": ends[key].get("then")} if key in ends else on
        for key, on in (entry.get("tools_config") or {}).items()
    }


def owned_by_code(kind: str, now: Entry | None, changed: Iterable[str]) -> list[errors.Problem]:
    """Return a problem for each changed key that an operator may not change: the fields of a toolkit in code."""
    owner = (now or {}).get("plugin") if kind == "toolkit" else None
    if not owner or now is None:
        return []
    message = f"The code of the plugin {owner!r} owns this: change it there, or use the toolkit's switch."
    path = belts.address("toolkit", dict(now))
    return [
        errors.Problem(path=f"{path}.{key}", message=message) for key in changed if key not in OPERATOR_FIELDS
    ]


def _refuse_conflicts(kind: str, name: str) -> None:
    """Raise Invalid for a toolkit or sub-app whose options now conflict in an agent that has it."""
    if kind not in _TOOL_FIELD:
        return
    stored = snapshots.catalog()
    path = f"{belts.KINDS[_kind(kind)].section}.{name}.{_TOOL_FIELD[kind]}"
    problems = [
        errors.Problem(path=path, message=f"For {agent.key}: {conflict.message}")
        for agent in snapshots.agents_with(kind, name)
        for conflict in conflicts.of_agent(stored, agent)
        if name in (conflict.first.name, conflict.second.name)
    ]
    if problems:
        raise errors.Invalid(problems)
