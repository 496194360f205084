"""How is anything that is configured created, changed and removed? One door for screen, admin, command and import.

The vocabulary is the belt's: an *entry* is one agent, toolkit, tool … in the shape in which a belt holds it, and what
is wrong with it is said with the same paths and words. Only the keys that a change really changes are kept in the
audit, before and after, so that undoing compares and restores those and nothing else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.control import actors, ceilings, endings, guards, reach, writing
from toolbelt.core import belts, budgets, conflicts, errors
from toolbelt.store import audit, entries, snapshots

NAMED = frozenset({"category", "plugin", "loadout"})
RETIRED_NOT_REMOVED = frozenset({"plugin", "tool"})
# What stays with operators of a toolkit in code; all else of it is the code's.
OPERATORS_OWN = frozenset({"blocked"})
# Where an entry says which tools it brings to agents.
_HANDS_OVER = {"toolkit": "members", "sub_app": "tool_names"}
# What the audit keeps of a removed entry beside its keys: its place among those of its kind, 0 for the first.
PLACE = "place"
Entry = Mapping[str, Any]


def naming(kind: str) -> str:
    """Say which key of an entry names it: categories, plugins and loadouts have a name, the others a key."""
    return "name" if kind in NAMED else "key"


def read(kind: str, name: str) -> dict[str, Any]:
    """Give the entry as it is stored. Raises errors.NotFound."""
    found = entries.read(kind, name)
    if found is None:
        raise errors.NotFound(kind.replace("_", "-"), name, entries.names(kind))
    return found


def put(
    actor: actors.Actor,
    kind: str,
    entry: Entry,
    *,
    was: Entry | None = None,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    action: str | None = None,
    undoes: int | None = None,
    in_code: bool = False,
    beside: belts.Known | None = None,
) -> writing.Change:
    """Store ``entry`` whole: create it, or replace what is stored under its key.

    ``was`` holds the keys (with their values; None: absent) that the writer saw: any that is not so now raises
    Stale. Raises Invalid with every problem and its path; and, as a flip does, Refused for a budget that it would
    pass (of the agent, or of any that it reaches) and ConfirmationRequired for an agent whose tools it changes far.
    ``in_code``: what is written comes from a plugin's code. ``beside`` is what the entry is judged beside, where the
    writer of many has just read it.
    """
    with writing.begin():
        name = entry.get(naming(kind))
        now = entries.read(kind, name) if isinstance(name, str) else None
        before = endings.find(str(name)) if kind == "agent" and now is not None else None
        for key, seen in (was or {}).items():
            if (now or {}).get(key) != seen:
                raise errors.Stale(f"{key} of {kind} {name}", seen, (now or {}).get(key), entry.get(key))
        written = name if kind == "category" else dict(entry)
        problems = belts.check_entry(_kind(kind), written, beside or known())
        if kind == "plugin" and now is not None and now.get("upstream") == entry.get("upstream"):
            # A rule that came later than the connection must not keep anyone from switching the server off.
            at = f"{belts.address(_kind(kind), now)}.upstream"
            problems = [problem for problem in problems if not problem.path.startswith(at)]
        if problems:
            raise errors.Invalid(problems)
        held = None if in_code else ceilings.of(kind)
        stored = entries.write(kind, dict(entry))
        had, has = differences(now, stored)
        if now is not None and not had and not has:
            return writing.Change(entry=None, before=had, after=has, whole=stored)
        if not in_code and (owned := owned_by_code(kind, now, has)):
            raise errors.Invalid(owned)
        if kind == "plugin":
            reach.guard(actor, str(name), now, stored)
        if budgets.hold(kind, has):
            _refuse_conflicts(kind, str(name))
            ceilings.refuse(held)
        effect = None
        if before is not None:
            after = snapshots.find(str(name), None)
            effect = guards.guarded(before.catalog, before.agent, after.agent, str(name), confirm=confirm)
        elif kind == "agent" and undoes is None:
            ceilings.refuse_new(str(name))
        number = recorded(
            actor, kind, str(name), now, stored, reason=reason, batch=batch, action=action, undoes=undoes
        )
    return writing.Change(entry=number, before=had, after=has, effect=effect, whole=stored)


def create(
    actor: actors.Actor, kind: str, entry: Entry, *, reason: str = "", confirm: bool = False
) -> writing.Change:
    """Store an entry whose name nothing of its kind has yet: Refused if something has. Raises as :func:`put` does."""
    with writing.begin():
        name = entry.get(naming(kind))
        if isinstance(name, str) and entries.read(kind, name) is not None:
            word = belts.KINDS[_kind(kind)].word
            raise errors.Refused(f"{name!r} is there already: change that {word}, or choose another name.")
        return put(actor, kind, entry, reason=reason, confirm=confirm)


def change(
    actor: actors.Actor,
    kind: str,
    name: str,
    changes: Entry,
    *,
    was: Entry | None = None,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    action: str | None = None,
    undoes: int | None = None,
    beside: belts.Known | None = None,
) -> writing.Change:
    """Change only the keys that ``changes`` names; None puts a key back to its default.

    Raises as :func:`put` does, which tells of the other arguments too.
    """
    if changes.get(naming(kind), name) != name:
        path = f"{belts.address(_kind(kind), {naming(kind): name})}.{naming(kind)}"
        message = "It keeps the name that everything else knows it by: make a new one, and remove this one."
        raise errors.Invalid([errors.Problem(path=path, message=message)])
    with writing.begin():
        now = read(kind, name)
        merged = {**now, **changes}
        if kind == "agent" and "tools_config" in changes and "ends" not in changes:
            merged["ends"] = _still_ending(now, merged)
        entry = {key: value for key, value in merged.items() if value is not None}
        return put(
            actor,
            kind,
            entry,
            was=was,
            reason=reason,
            confirm=confirm,
            batch=batch,
            action=action,
            undoes=undoes,
            beside=beside,
        )


def _still_ending(now: Entry, merged: Entry) -> dict[str, Any] | None:
    """Give the ends of what stays as it is: what is set otherwise stands for good."""
    had, has = now.get("tools_config") or {}, merged.get("tools_config") or {}
    ends = now.get("ends") or {}
    return {key: end for key, end in ends.items() if key in has and has[key] is had.get(key)} or None


def remove(
    actor: actors.Actor,
    kind: str,
    name: str,
    *,
    was: Entry | None = None,
    reason: str = "",
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Remove an agent, toolkit, loadout, sub-app or category that nothing refers to; the audit keeps it whole.

    ``was`` is the entry as the writer saw it: if it is not so now, that raises Stale. Tools and plugins are retired
    or disabled, never removed: their switches and history stay. Refused where an agent would pass a budget by it: what
    held a tool off is gone, too.
    """
    if kind in RETIRED_NOT_REMOVED:
        raise errors.Refused(
            f"A {kind} is never removed: {'retire' if kind == 'tool' else 'disable'} {name} instead."
        )
    with writing.begin():
        now = read(kind, name)
        if was is not None and now != was:
            raise errors.Stale(f"{belts.KINDS[_kind(kind)].word} {name}", was, now)
        refuse_while_used(kind, name)
        # Where it stood belongs to what is kept of it: undoing puts it back there.
        kept = {**now, PLACE: entries.names(kind).index(name)} if entries.is_ordered(kind) else now
        held = ceilings.of(kind)
        entries.delete(kind, name)
        ceilings.refuse(held)
        number = audit.record(
            actor=actor.name,
            via=actor.via,
            action=f"{kind}.remove",
            subject_kind=kind,
            subject_key=name,
            before=kept,
            after=None,
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    return writing.Change(entry=number, before=kept, after=None)


def refuse_while_used(kind: str, name: str) -> None:
    """Raise Refused while something refers to this, and name it."""
    if users := entries.users(kind, name):
        raise errors.Refused(f"{name} is used by {', '.join(users)}: change that first.")


def _kind(kind: str) -> belts.KindName:
    for known in belts.KINDS:
        if known == kind:
            return known
    raise errors.NotFound("kind of entry", kind, belts.KINDS)


def known() -> belts.Known:
    """Give what an entry that is written alone is judged beside."""
    return belts.Known.of_catalog(snapshots.catalog(), entries.names("agent"))


def differences(now: Entry | None, stored: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the keys that differ, as they were and as they are; None stands for a key that is not there."""
    if now is None:
        return {}, dict(stored)
    keys = [key for key in {**now, **stored} if now.get(key) != stored.get(key)]
    return {key: now.get(key) for key in keys}, {key: stored.get(key) for key in keys}


def recorded(
    actor: actors.Actor,
    kind: str,
    name: str,
    now: Entry | None,
    stored: Entry,
    *,
    reason: str = "",
    batch: uuid.UUID | None = None,
    action: str | None = None,
    undoes: int | None = None,
) -> int:
    """Record what became of an entry, and give the id of the last audit entry.

    Switches and overrides of an agent that was there are recorded key by key, as flips are: so each of them can be
    found and undone on its own, whichever way it was written.
    """
    before, after = differences(now, stored)
    flips: list[tuple[str, Any, Any]] = []
    if kind == "agent" and now is not None and not {"tools_config", "ends"}.isdisjoint(after):
        had, has = _flat(now), _flat(stored)
        flips = [(key, had.get(key), has.get(key)) for key in sorted({**had, **has})]
        flips = [flip for flip in flips if flip[1] != flip[2]]
        for side in (before, after):
            side.pop("tools_config", None)
            side.pop("ends", None)
    if flips and batch is None and (len(flips) > 1 or after):
        batch = writing.new_batch()
    toolkits = set(entries.names("toolkit")) if flips else set()
    number = 0

    def record(*, action: str, key: str = "", before: Any, after: Any) -> int:
        return audit.record(
            actor=actor.name,
            via=actor.via,
            action=action,
            subject_kind=kind,
            subject_key=name,
            key=key,
            before=before,
            after=after,
            reason=reason,
            batch=batch,
            undoes=undoes,
        )

    for key, was, on in flips:
        family = "switch" if key in toolkits else "override"
        number = record(
            action=f"{family}.set" if on is not None else f"{family}.clear", key=key, before=was, after=on
        )
    if after or now is None:
        number = record(
            action=action or f"{kind}.{'create' if now is None else 'change'}",
            before=None if now is None else before,
            after=after,
        )
    return number


def _flat(entry: Entry) -> dict[str, Any]:
    """Say how each switch and override of an agent's entry stands, as :func:`toolbelt.core.grants.said` does."""
    ends = entry.get("ends") or {}
    return {
        key: {"on": on, "ends": ends[key]["at"], "then": ends[key].get("then")} if key in ends else on
        for key, on in (entry.get("tools_config") or {}).items()
    }


def owned_by_code(kind: str, now: Entry | None, changed: Iterable[str]) -> list[errors.Problem]:
    """Say which of the changed keys are not an operator's to change: what a toolkit in code consists of."""
    owner = (now or {}).get("plugin") if kind == "toolkit" else None
    if not owner or now is None:
        return []
    message = f"The code of the plugin {owner!r} owns this: change it there, or flip the toolkit's switch."
    path = belts.address("toolkit", dict(now))
    return [
        errors.Problem(path=f"{path}.{key}", message=message) for key in changed if key not in OPERATORS_OWN
    ]


def _refuse_conflicts(kind: str, name: str) -> None:
    """Refuse a toolkit or sub-app whose options would now collide in some agent that has it."""
    if kind not in _HANDS_OVER:
        return
    stored = snapshots.catalog()
    path = f"{belts.KINDS[_kind(kind)].section}.{name}.{_HANDS_OVER[kind]}"
    problems = [
        errors.Problem(path=path, message=f"For {agent.key}: {conflict.message}")
        for agent in snapshots.agents_with(kind, name)
        for conflict in conflicts.of_agent(stored, agent)
        if name in (conflict.first.name, conflict.second.name)
    ]
    if problems:
        raise errors.Invalid(problems)
