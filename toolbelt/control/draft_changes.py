"""Changes as the audit log records them, made again: collected from a change that is rolled back, compared with what is
stored, and made by the functions that make such changes (decision 80).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolbelt.control import guards, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.servers import decisions, inbox
from toolbelt.core import belts, catalog, errors, grants, keys, texts, tool_versions
from toolbelt.store import audit, revisions, snapshots

# How many differences a message names, and the characters of a value in it.
MAX_NAMED = 3
MAX_VALUE_LENGTH = 60
# Changes of an entry's row that are no part of the configuration.
_BESIDE = frozenset({"operators", "purge"})
# Decisions about the version of a tool that a person saw.
_REVIEWS = frozenset({"tool.approve", "tool.reject"})
_REVERSED = {"create": "remove", "remove": "create"}
_VERBS = {"create": "Create", "remove": "Remove", "approve": "Approve", "reject": "Reject"}
_FLIPS: Mapping[bool | None, str] = {True: "Turn on", False: "Turn off", None: "Reset"}
_WORDS: Mapping[str, str] = {name: kind.word for name, kind in belts.KINDS.items()}
# Whether there is an entry, in words.
_THERE, _MISSING = "there", "missing"
# The name of a switch or override among the fields of an agent begins with it.
_SWITCHES = "switches."
_Logged = dict[tuple[str, str, str], tuple[Any, Any]]


class NotAsSeen(errors.Stale):
    """A draft is not applied, because something that it changes is not as it was; ``fields`` are all of these."""

    def __init__(self, differing: Mapping[str, tuple[Any, Any]]) -> None:
        first, (was, now) = next(iter(differing.items()))
        super().__init__(first, was, now, fields={name: value for name, (_, value) in differing.items()})
        parts = [difference(name, *values) for name, values in differing.items()]
        more = f"; and {len(parts) - MAX_NAMED} more" if len(parts) > MAX_NAMED else ""
        self.args = (
            f"Not applied, because what it changes is not as it was: {'; '.join(parts[:MAX_NAMED])}{more}."
            " Make the change again.",
        )


def verb(change: audit.Entry) -> str:
    """Return what a change of a draft does, for a heading with its object: ``Turn off``, ``Create toolkit``."""
    if change.key:
        return _FLIPS[grants.is_on(change.after)]
    act = change.action.rpartition(".")[2]
    if act == "order":
        return f"Reorder {change.subject_kind.replace('_', '-')}s, starting with"
    after = change.after if isinstance(change.after, Mapping) else {}
    done = _VERBS.get(act, "Change")
    if "blocked" in after and act == "change":
        done = "Block" if after["blocked"] else "Unblock"
    if set(after) == {"archived"}:
        done = "Archive" if after["archived"] else "Bring back"
    return f"{done} {_WORDS[change.subject_kind]}"


def collect(
    write: writing.Write, act: Callable[[writing.Write], object]
) -> tuple[list[audit.Entry], dict[str, str], int]:
    """Return the audit entries of a change that is rolled back, what it shows of tools, and the revision before."""
    with writing.dry_run():
        revision, newest, stored = revisions.number(), audit.newest_id(), snapshots.catalog()
        act(write)
        logged = audit.after(newest)
    changes = [entry for entry in logged if not entry.is_fact]
    for change in changes:
        act_word = change.action.rpartition(".")[2]
        if change.subject_kind not in belts.KINDS or act_word in _BESIDE:
            raise errors.Refused(
                f"A draft keeps changes of the configuration, and {change.action} is none: make this change directly."
            )
    if not changes:
        raise errors.Refused("Nothing would change, so there is nothing to save.")
    shown = {
        change.subject_key: tool_versions.shown_version(stored.tools[change.subject_key])
        for change in changes
        if change.action in _REVIEWS and change.subject_key in stored.tools
    }
    return changes, shown, revision


def make(write: writing.Write, changes: Iterable[audit.Entry], shown: Mapping[str, str]) -> writing.Change:
    """Make changes, in the transaction of the caller, all of them or none."""
    changes = tuple(changes)
    if changed := dict(differing(changes)):
        raise NotAsSeen(changed)
    newest, reasons, effects_of = audit.newest_id(), dict[str, None](), list[Any]()
    agent = _only_agent(changes)
    before = snapshots.find(agent, None) if agent else None
    for _, group in itertools.groupby(changes, _step):
        step = [change for change in group if not _is_made(change)]
        if not step:
            # An earlier step brought it about.
            continue
        try:
            _make_step(write, step, shown, changes)
        except errors.ConfirmationRequired as error:
            if write.confirm:
                raise
            whose = "" if agent or step[0].subject_kind != "agent" else step[0].subject_key
            reasons |= dict.fromkeys(_with_agent(reason, whose) for reason in error.reasons)
            effects_of.append(error.differences)
            _make_step(write.replace(confirm=True), step, shown, changes)
    effect = None
    if before is not None:
        after = snapshots.find(str(agent), None)
        effect = guards.effect(before.catalog, before.agent, after.agent)
    if reasons:
        summed = guards.summed(effects_of)
        differences = guards.describe_effect("", None, effect) if effect is not None else summed
        raise errors.ConfirmationRequired([*reasons], differences)
    logged = [entry for entry in audit.after(newest) if not entry.is_fact]
    if _together(logged) != _together(changes):
        raise errors.Refused(
            "Made later, this change would not be the one that you see, so it is not kept as a draft, nor applied:"
            " make it directly."
        )
    last = logged[-1].id if logged else None
    return writing.Change(entry=last, before=None, after=None, effect=effect)


def _with_agent(reason: str, agent: str) -> str:
    """Return a reason to confirm with the agent it is about, unless it names it, or only one is changed."""
    return reason if not agent or reason.startswith(agent) else f"{agent}: {reason}"


def _step(change: audit.Entry) -> tuple[Any, ...]:
    """Return what changes have in common that are made together: they are checked together, too."""
    if change.key:
        return "flip", change.subject_key
    return (change.action,) if change.action in _REVIEWS else ("one", id(change))


def _make_step(
    write: writing.Write, step: list[audit.Entry], shown: Mapping[str, str], changes: Iterable[audit.Entry]
) -> None:
    with writing.begin():
        change = step[0]
        if change.key:
            _flip_all(write, change.subject_key, step)
        elif change.action in _REVIEWS:
            versions = {each.subject_key: shown.get(each.subject_key, "") for each in step}
            if change.action == "tool.approve":
                if not write.confirm:
                    inbox.check(versions)
                # What a new name takes over is a change of its own.
                decisions.approve(write, versions, carry_over=False)
            else:
                decisions.reject(write, versions)
        else:
            _make_one(write, change, changes)


def _make_one(write: writing.Write, change: audit.Entry, changes: Iterable[audit.Entry]) -> None:
    kind, name = change.subject_kind, change.subject_key
    if _is_order(change):
        ordering.set_order(write, kind, change.after["order"], was=change.before["order"])
    elif change.before is None:
        entries.put(write, kind, change.after, index=_index(kind, changes))
    elif change.after is None:
        entries.remove(write, kind, name)
    else:
        if change.action == "agent.equip":
            write = write.replace(action="agent.equip")
        entries.change(write, kind, name, change.after, index=_index(kind, changes))


def _index(kind: str, changes: Iterable[audit.Entry]) -> belts.NameIndex | None:
    """Return the index to check a loadout against: with what becomes of the others, since its parent may be made later,
    as in a belt. None for other kinds, whose order in a belt is the one in which they refer to each other.
    """
    written: dict[str, dict[str, Any]] = {}
    for change in changes if kind == "loadout" else ():
        if change.subject_kind == kind and change.after is not None and not _is_order(change):
            name = change.subject_key
            written[name] = {**(written.get(name) or _state(kind, name) or {}), **change.after}
    if len(written) < 2:
        return None
    index = entries.name_index()
    loadouts = {
        keys.fold(name): belts.value(
            "loadout", {field: value for field, value in entry.items() if value is not None}, index.stored
        )
        for name, entry in written.items()
    }
    return dataclasses.replace(
        index,
        stored=catalog.replace(index.stored, loadouts={**index.stored.loadouts, **loadouts}.values()),
    )


def _flip_all(write: writing.Write, agent: str, step: Iterable[audit.Entry]) -> None:
    current = expirations.find(agent)
    states = {change.key: change.after for change in step}
    for key in states:
        if key not in current.catalog.toolkits and key not in current.catalog.tools:
            raise errors.NotFound("toolkit or tool", key, [*current.catalog.toolkits, *current.catalog.tools])
    switches.set_all(
        write,
        current,
        {key: grants.is_on(state) for key, state in states.items()},
        ends={key: grants.expiry_of(state) for key, state in states.items()},
    )


def differing(changes: Iterable[audit.Entry]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield what is not as the changes saw it: its name, and the value then and now."""
    states: dict[tuple[str, str], dict[str, Any] | None] = {}
    for change in changes:
        place = change.subject_kind, change.subject_key
        if _is_order(change):
            # Compared when it is made: what the draft creates may be in it.
            continue
        if place not in states:
            states[place] = _state(*place)
        state, whose = states[place], word(change)
        before, after = _fields(change, change.before), _fields(change, change.after)
        if before is None:
            if state is not None:
                yield whose, (_MISSING, _THERE)
            states[place] = after
            continue
        if state is None:
            yield whose, (_THERE, _MISSING)
            continue
        seen = {*before, *state} if after is None else {*before, *(after or {})}
        for name in sorted(seen):
            if state.get(name) != before.get(name):
                yield f"{name.removeprefix(_SWITCHES)} of {whose}", (before.get(name), state.get(name))
        states[place] = None if after is None else {**state, **after}


def _is_made(change: audit.Entry) -> bool:
    """Return whether everything is as the change leaves it."""
    if _is_order(change):
        return False
    state = _state(change.subject_kind, change.subject_key)
    after = _fields(change, change.after)
    if after is None or state is None:
        return after is None and state is None
    return all(state.get(name) == value for name, value in after.items())


def _state(kind: str, name: str) -> dict[str, Any] | None:
    """Return the fields of an entry, each of its switches and overrides as one of them; None if it is missing."""
    try:
        return _flat(entries.read(kind, name))
    except errors.NotFound:
        return None


def _fields(change: audit.Entry, side: Any) -> dict[str, Any] | None:
    if change.key:
        return {f"{_SWITCHES}{change.key}": side}
    return None if side is None else _flat(side)


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    others = {
        name: value for name, value in entry.items() if name not in ("tools_config", "ends", belts.POSITION)
    }
    return others | {f"{_SWITCHES}{key}": state for key, state in belts.switches(entry).items()}


def _together(changes: Iterable[audit.Entry]) -> _Logged:
    """Return what changes amount to: the value before and after each field, by kind, name and field."""
    made: _Logged = {}
    for change in changes:
        before, after = _fields(change, change.before), _fields(change, change.after)
        if _is_order(change):
            before, after = change.before, change.after
        for name in {**(before or {}), **(after or {})}:
            place = change.subject_kind, "" if name == "order" else change.subject_key, name
            was = made[place][0] if place in made else (before or {}).get(name)
            made[place] = was, (after or {}).get(name)
    return {place: (was, now) for place, (was, now) in made.items() if was != now}


def reverse(change: audit.Entry) -> audit.Entry:
    """Return the change that undoes this one, which requires the same permissions as making it."""
    family, _, act = change.action.partition(".")
    action = f"{family}.{_REVERSED.get(act, act)}"
    return dataclasses.replace(change, action=action, before=change.after, after=change.before)


def _only_agent(changes: Iterable[audit.Entry]) -> str:
    """Return the agent that is changed, if nothing else is, and it exists; empty otherwise."""
    subjects = {(change.subject_kind, change.subject_key) for change in changes}
    kind, name = next(iter(subjects)) if len(subjects) == 1 else ("", "")
    is_changed = kind == "agent" and all(
        change.key or None not in (change.before, change.after) for change in changes
    )
    return name if is_changed and _state("agent", name) is not None else ""


def _is_order(change: audit.Entry) -> bool:
    return change.action.endswith(".order")


def describe(change: audit.Entry) -> str:
    """Return what a change does to what, in a few words."""
    if change.key:
        return f"{verb(change)} {change.key} for {change.subject_key}"
    return f"{verb(change)} {change.subject_key}"


def word(change: audit.Entry) -> str:
    """Return the kind and the name of what is changed."""
    return f"{_WORDS[change.subject_kind]} {change.subject_key}"


def difference(name: str, was: Any, now: Any) -> str:
    """Return in words what is not as it was."""
    return f"{name} was {_value(was)}, and is {_value(now)}"


def _value(value: Any) -> str:
    return texts.cut(errors.describe_value(value), MAX_VALUE_LENGTH)
