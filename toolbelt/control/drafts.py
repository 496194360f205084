"""Drafts: changes that are kept instead of made, and made as they were seen (docs/how-to/try-a-change.md).

A draft is what the audit log would record of a change. The change is made by the function that makes it, in a
transaction that is rolled back, and its entries are kept. To apply it, each of them is made again: in one transaction,
if everything that it changes is still as it was, and only if exactly the same is then logged. The draft's key is the
batch of these entries, so that they are one change.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolbelt.control import guards, proofs, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.people import rights
from toolbelt.control.servers import decisions, inbox
from toolbelt.core import belts, errors, grants, texts, tool_versions
from toolbelt.store import audit, clock, revisions, snapshots, trials
from toolbelt.store import drafts as rows

Draft = rows.Draft
listed, count_open = rows.listed, rows.count_open
# How long a draft is kept, and at most.
KEPT, MAX_KEPT = dt.timedelta(days=30), dt.timedelta(days=365)
MAX_TITLE = 200
# How many changes a title or a message names.
MAX_NAMED = 3
MAX_VALUE_LENGTH = 60
# Changes of an entry's row that are no part of the configuration.
_BESIDE = frozenset({"operators", "purge"})
# Decisions about the version of a tool that a person saw.
_REVIEWS = frozenset({"tool.approve", "tool.reject"})
_REVERSED = {"create": "remove", "remove": "create"}
_VERBS = {"create": "Create", "remove": "Remove", "approve": "Approve", "reject": "Reject"}
_FLIPS: Mapping[bool | None, str] = {True: "Turn on", False: "Turn off", None: "Reset"}
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
        parts = [
            f"{name} was {_describe(was)}, and is {_describe(now)}" for name, (was, now) in differing.items()
        ]
        more = f"; and {len(parts) - MAX_NAMED} more" if len(parts) > MAX_NAMED else ""
        self.args = (
            f"Not applied, because what it changes is not as it was: {'; '.join(parts[:MAX_NAMED])}{more}."
            " Make the change again.",
        )


def save(
    write: writing.Write,
    act: Callable[[writing.Write], object],
    *,
    title: str = "",
    ends: dt.datetime | None = None,
) -> Draft:
    """Keep the change that ``act`` makes as a draft, and make nothing of it; raise as ``act`` does.

    ``act`` is passed the write, confirmed: what has to be confirmed is when the draft is applied. Without a ``title``,
    it says what changes; ``ends`` is when the draft is discarded, :data:`KEPT` from now by default.

    Raise errors.Refused for a change that cannot be made later, or that changes nothing.
    """
    ends = _end(ends)
    if len(title) > MAX_TITLE:
        raise _invalid("title", f"It is longer than {MAX_TITLE} characters: shorten it.")
    changes, shown, revision = _collect(write.replace(confirm=True), act)
    reason = write.reason or next((change.reason for change in changes if change.reason), "")
    with writing.dry_run():
        # What could not be applied now could never be.
        _make_all(write.replace(confirm=True), changes, shown)
    with writing.begin():
        draft = rows.save(
            title=title.strip() or describe(changes),
            author=write.actor.name,
            reason=reason,
            ends=ends,
            revision=revision,
            changes=changes,
            shown=shown,
        )
        writing.record(write, "draft", str(draft.key), action="draft.save", before=None, after=_about(draft))
    return draft


def find(key: uuid.UUID | str) -> Draft:
    """Return a draft; raise errors.NotFound."""
    draft = rows.find(_key(key))
    if draft is None:
        raise _not_found(key)
    return draft


def describe(changes: Iterable[audit.Entry]) -> str:
    """Return what the changes of a draft are, in a few words."""
    changes = list(changes)
    more = f" and {texts.counted(len(changes) - 1, 'more change')}" if len(changes) > 1 else ""
    return texts.cut(_describe_change(changes[0]), MAX_TITLE - len(more)) + more


def verb(change: audit.Entry) -> str:
    """Return what a change of a draft does, for a heading with its object: ``Turn off``, ``Create toolkit``."""
    if change.key:
        return _FLIPS[grants.is_on(change.after)]
    act = change.action.rpartition(".")[2]
    if act == "order":
        return f"Reorder {change.subject_kind.replace('_', '-')}s, starting with"
    after = change.after if isinstance(change.after, Mapping) else {}
    word = _VERBS.get(act, "Change")
    if "blocked" in after and act == "change":
        word = "Block" if after["blocked"] else "Unblock"
    if set(after) == {"archived"}:
        word = "Archive" if after["archived"] else "Bring back"
    words: dict[str, str] = {name: kind.word for name, kind in belts.KINDS.items()}
    return f"{word} {words[change.subject_kind]}"


def differing(draft: Draft, may_read: Callable[[str], bool]) -> tuple[str, ...]:
    """Return in words what is not as it was when a draft was saved, so that it cannot be applied: without the values of
    the kinds of entries that the reader may not read.
    """
    shown = [change for change in draft.changes if may_read(change.subject_kind)]
    hidden: dict[str, list[audit.Entry]] = {}
    for change in draft.changes:
        if not may_read(change.subject_kind):
            hidden.setdefault(_word(change), []).append(change)
    return (
        *(f"{name} was {_describe(was)}, and is {_describe(now)}" for name, (was, now) in _differing(shown)),
        *(f"{word} is not as it was" for word, changes in hidden.items() if any(_differing(changes))),
    )


def reversals(draft: Draft) -> list[audit.Entry]:
    """Return the changes that would undo those of a draft, which require the same permissions as applying it."""
    return [_reverse(change) for change in draft.changes]


def may_apply(user: rights.User, draft: Draft) -> bool:
    """Return whether the user may apply a draft, because they may make each of its changes directly."""
    return all(map(rights.undo_check(user), reversals(draft)))


def prove(
    write: writing.Write,
    key: uuid.UUID | str,
    *,
    days: int = proofs.DAYS,
    basis: proofs.Basis = "now",
) -> proofs.Proof:
    """Return what a draft would have done to the recorded calls; raise as :func:`apply` does."""
    draft = find(key)
    return proofs.prove(lambda: make(write.replace(confirm=True), draft), days=days, basis=basis)


def make(write: writing.Write, draft: Draft) -> writing.Change:
    """Make the change of a draft, in the transaction of the caller; raise NotAsSeen if it is not as it was seen."""
    if not draft.is_intact:
        raise errors.Refused(
            f"The draft {draft.title!r} was changed in the database since it was saved, so it is not applied."
            " Discard it."
        )
    batched = write.replace(batch=draft.key, reason=write.reason or draft.reason or draft.title[:500])
    return _make_all(batched, draft.changes, draft.shown)


def check(write: writing.Write, draft: Draft) -> None:
    """Raise as :func:`apply` would; nothing is written."""
    with writing.dry_run():
        make(write, draft)


def to_confirm(write: writing.Write, draft: Draft) -> tuple[str, ...]:
    """Return what would have to be confirmed to apply a draft now; raise as :func:`apply` does otherwise."""
    try:
        check(write.replace(confirm=False), draft)
    except errors.ConfirmationRequired as error:
        return error.reasons
    return ()


def refuse_closed(draft: Draft) -> None:
    """Raise errors.Refused for a draft that was applied or has ended."""
    if draft.applied is not None:
        raise errors.Refused(f"This draft was already applied by {draft.applied_by}.")
    if not draft.is_open:
        raise errors.Refused("This draft has ended. Make the change again.")


def is_tried(draft: Draft) -> bool:
    """Return whether a draft is observed or scheduled: then only those who may apply it may discard it."""
    return bool(trials.running([draft.key]))


def keep_until(draft: Draft, ends: dt.datetime) -> None:
    """Discard a draft no earlier than at ``ends``, in the transaction of the caller."""
    if draft.ends < ends:
        rows.keep_until(draft.key, ends)


def apply(write: writing.Write, key: uuid.UUID | str) -> writing.Change:
    """Make the change of a draft, once; undoing its batch undoes it.

    Raise NotAsSeen if anything that it changes is not as it was, errors.Refused if it was applied or has ended, and as
    the change itself does, such as ConfirmationRequired.
    """
    with writing.begin():
        draft = rows.find(_key(key), lock=True)
        if draft is None:
            raise _not_found(key)
        refuse_closed(draft)
        change = make(write, draft)
        rows.applied(draft.key, write.actor.name)
        # What it would do is no longer a question.
        for trial in trials.running([draft.key]):
            trials.end(trial.pk, "applied")
    return change


def discard(write: writing.Write, key: uuid.UUID | str) -> None:
    """Delete a draft; raise errors.NotFound. What was applied of it stays."""
    with writing.begin():
        draft = rows.find(_key(key), lock=True)
        if draft is None:
            raise _not_found(key)
        rows.remove([draft.key])
        writing.record(
            write, "draft", str(draft.key), action="draft.discard", before=_about(draft), after=None
        )


def discard_ended() -> int:
    """Delete the drafts whose time has come; return their number."""
    deleted = 0
    for ended in rows.ended():
        with writing.begin():
            draft = rows.find(ended.key, lock=True)
            # Another process may have deleted it, or a trial keeps it longer.
            if draft is None or draft.ends > clock.now():
                continue
            rows.remove([draft.key])
            deleted += 1
            if draft.applied is None:
                clock_write = writing.Write(actor=expirations.SYSTEM)
                writing.record(
                    clock_write, "draft", str(draft.key), action="draft.end", before=_about(draft), after=None
                )
    return deleted


def _collect(
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


def _make_all(
    write: writing.Write, changes: Iterable[audit.Entry], shown: Mapping[str, str]
) -> writing.Change:
    """Make changes, in the transaction of the caller, all of them or none."""
    changes = tuple(changes)
    if differing := dict(_differing(changes)):
        raise NotAsSeen(differing)
    newest, reasons, effects_of = audit.newest_id(), dict[str, None](), list[Any]()
    agent = _only_agent(changes)
    before = snapshots.find(agent, None) if agent else None
    for _, group in itertools.groupby(changes, _step):
        step = [change for change in group if not _is_made(change)]
        if not step:
            # An earlier step brought it about.
            continue
        try:
            _make(write, step, shown)
        except errors.ConfirmationRequired as error:
            if write.confirm:
                raise
            whose = "" if agent or step[0].subject_kind != "agent" else step[0].subject_key
            reasons |= dict.fromkeys(_with_agent(reason, whose) for reason in error.reasons)
            effects_of.append(error.differences)
            _make(write.replace(confirm=True), step, shown)
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


def _make(write: writing.Write, step: list[audit.Entry], shown: Mapping[str, str]) -> None:
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
            _make_one(write, change)


def _make_one(write: writing.Write, change: audit.Entry) -> None:
    kind, name = change.subject_kind, change.subject_key
    if _is_order(change):
        ordering.set_order(write, kind, change.after["order"], was=change.before["order"])
    elif change.before is None:
        entries.put(write, kind, change.after)
    elif change.after is None:
        entries.remove(write, kind, name)
    else:
        if change.action == "agent.equip":
            write = write.replace(action="agent.equip")
        entries.change(write, kind, name, change.after)


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


def _differing(changes: Iterable[audit.Entry]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield what is not as the changes saw it: its name, and the value then and now."""
    states: dict[tuple[str, str], dict[str, Any] | None] = {}
    for change in changes:
        place = change.subject_kind, change.subject_key
        if _is_order(change):
            # Compared when it is made: what the draft creates may be in it.
            continue
        if place not in states:
            states[place] = _state(*place)
        state, word = states[place], _word(change)
        before, after = _fields(change, change.before), _fields(change, change.after)
        if before is None:
            if state is not None:
                yield word, (_MISSING, _THERE)
            states[place] = after
            continue
        if state is None:
            yield word, (_THERE, _MISSING)
            continue
        seen = {*before, *state} if after is None else {*before, *(after or {})}
        for name in sorted(seen):
            if state.get(name) != before.get(name):
                yield f"{_field(name)} of {word}", (before.get(name), state.get(name))
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


def _reverse(change: audit.Entry) -> audit.Entry:
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


def _describe_change(change: audit.Entry) -> str:
    if change.key:
        return f"{verb(change)} {change.key} for {change.subject_key}"
    return f"{verb(change)} {change.subject_key}"


def _word(change: audit.Entry) -> str:
    words: dict[str, str] = {name: kind.word for name, kind in belts.KINDS.items()}
    return f"{words[change.subject_kind]} {change.subject_key}"


def _field(name: str) -> str:
    return name.removeprefix(_SWITCHES)


def _describe(value: Any) -> str:
    return texts.cut(errors.describe_value(value), MAX_VALUE_LENGTH)


def _end(ends: dt.datetime | None) -> dt.datetime:
    now = clock.now()
    if ends is None:
        return now + KEPT
    if ends.tzinfo is None:
        raise _invalid("ends", f"{ends.isoformat()} has no time zone: add one, such as Z for UTC.")
    if not now < ends <= now + MAX_KEPT:
        raise _invalid("ends", f"Choose a time in the next {MAX_KEPT.days} days.")
    return ends


def _key(key: uuid.UUID | str) -> uuid.UUID:
    try:
        return key if isinstance(key, uuid.UUID) else uuid.UUID(key)
    except ValueError:
        raise _not_found(key) from None


def _not_found(key: uuid.UUID | str) -> errors.NotFound:
    return errors.NotFound("draft", str(key))


def _invalid(path: str, message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message)])


def _about(draft: Draft) -> dict[str, Any]:
    """Return what the audit log says of a draft that was saved, or is gone."""
    return {"title": draft.title, "changes": len(draft.changes)}
