"""How does a form that was sent become a change, through the door that every shell goes through?

A form carries the entry as it was when it was loaded. What its writer changed is what differs from that, key by key:
what they left alone is not touched, and a key that somebody else changed meanwhile is refused. Everything of one form
comes about in one transaction and shares a batch, or nothing does.
"""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from toolbelt.admin import inputs, wishes
from toolbelt.control import entries, switches, writing
from toolbelt.core import errors, grants, schema

# What is wanted of a switch or an override: on or off, with its end or for good (see wishes.grant); None: unset.
Flips = dict[tuple[str, str], Any]


def save(wish: wishes.Wish) -> list[str]:
    """Bring about what is wanted; name the keys that were changed. Raises NotSaved, and then nothing was."""
    why = wishes.NotSaved()
    with writing.begin():
        changed = _create(wish, why) if wish.seen is None else _change(wish, wish.seen, why)
        if why.obstacles or not wish.confirmed.issuperset(why.asked):
            raise why
    return changed


def _create(wish: wishes.Wish, why: wishes.NotSaved) -> list[str]:
    try:
        entries.read(wish.kind, wish.name)
    except errors.NotFound:
        entry = {key: value for key, value in wish.wanted.items() if value is not None}
        for family in wishes.FAMILIES:
            for key, said in entry.pop(family, {}).items():
                entry.setdefault(wishes.FLAT, {})[key] = wishes.is_on(said)
                if (at := wishes.end(said)) is not None:
                    entry.setdefault(wishes.ENDS, {})[key] = {"at": at, "by": wish.actor.name}
        with _collecting(wish, why):
            entries.put(wish.actor, wish.kind, entry, reason=wish.reason)
        return list(entry)
    message = f"{wish.name!r} is there already: change that one, or choose another name."
    why.obstacles.append(wishes.Obstacle(key=entries.naming(wish.kind), message=message))
    return []


def _change(wish: wishes.Wish, seen: Mapping[str, Any], why: wishes.NotSaved) -> list[str]:
    with _collecting(wish, why):
        now = entries.read(wish.kind, wish.name)
        changes, flips = _differences(wish, seen, now)
        _refuse_stale(wish, why, changes, seen, now)
        _refuse_stale_flips(wish, why, flips, seen, now)
    if why.obstacles:
        return []
    batch, flat = writing.new_batch(), seen.get(wishes.FLAT) or {}
    # What takes away goes first: a switch may have to be off before its tool can come in another way.
    taking: Flips = {
        slot: said
        for slot, said in flips.items()
        if wishes.is_on(said) is False or (said is None and flat.get(slot[1]) is True)
    }
    for (family, key), said in taking.items():
        _flip(wish, why, family, key, said, flat.get(key), batch)
    if changes:
        was = {key: seen.get(key) for key in changes}
        write = functools.partial(
            entries.change,
            wish.actor,
            wish.kind,
            wish.name,
            changes,
            was=was,
            reason=wish.reason,
            batch=batch,
        )
        with _collecting(wish, why):
            _confirmed(why, _token(changes), ", ".join(sorted(changes)), write)
    for (family, key), said in flips.items():
        if (family, key) not in taking:
            _flip(wish, why, family, key, said, flat.get(key), batch)
    return [*changes, *(key for _, key in flips)]


def _flip(
    wish: wishes.Wish,
    why: wishes.NotSaved,
    family: str,
    key: str,
    said: Any,
    was: bool | None,
    batch: uuid.UUID,
) -> None:
    """Flip one switch or override.

    One that is to be confirmed is written down and flipped all the same, so that what follows is tried too and all
    there is to say is said at once. If it was not confirmed, nothing of it stays.
    """
    write = switches.flip if family == wishes.SWITCHES else switches.override
    on, at = wishes.is_on(said), wishes.end(said)
    flip = functools.partial(
        write,
        wish.actor,
        wish.name,
        key,
        on,
        ends=grants.moment(at),
        was=was,
        reason=wish.reason,
        batch=batch,
    )
    with _collecting(wish, why, family, f".{key}"):
        word = errors.was_in_words(on) + (f"-until-{at}" if at else "")
        _confirmed(why, f"{key}={word}", f"{key} {word}", flip)


def _token(changes: Mapping[str, Any]) -> str:
    """Name these changes and no others in one word, for the box that confirms them."""
    digest = hashlib.sha256(schema.canonical(dict(changes)).encode()).hexdigest()
    return f"{'+'.join(sorted(changes))}={digest[:16]}"


def _confirmed(why: wishes.NotSaved, token: str, what: str, write: Callable[..., object]) -> None:
    """Write; what is to be confirmed is written down, and written all the same (see :func:`_flip`)."""
    try:
        with transaction.atomic():
            write()
    except errors.ConfirmationRequired as error:
        why.asked[token] = wishes.in_words(what, error)
        write(confirm=True)


@contextmanager
def _collecting(wish: wishes.Wish, why: wishes.NotSaved, key: str = "", rest: str = "") -> Iterator[None]:
    """Write down why the door refuses what is done within, and undo that; ``key`` and ``rest`` say what it is about."""
    try:
        with transaction.atomic():
            yield
    except errors.Invalid as error:
        why.obstacles += [
            wishes.Obstacle(key=key, rest=f"{rest}.ends", message=problem.message)
            if key and problem.path == wishes.ENDS
            else wishes.located(wish, problem)
            for problem in error.problems
        ]
    except errors.ToolbeltError as error:
        why.obstacles.append(wishes.Obstacle(key=key, rest=rest, message=str(error)))


def _differences(
    wish: wishes.Wish, seen: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[dict[str, Any], Flips]:
    """Give what the writer changed and what is not as they want it already: keys of the entry, and flips."""
    wanted = dict(wish.wanted)
    wanted_of = {family: wanted.pop(family) for family in wishes.FAMILIES if family in wanted}
    seen_of = wishes.parted(wishes.flat(seen)) if wanted_of else {}
    flat_now = wishes.flat(now)
    flips: Flips = {}
    for family, has in wanted_of.items():
        had = seen_of[family]
        for key in sorted({**had, **has}):
            if has.get(key) != had.get(key) and has.get(key) != flat_now.get(key):
                flips[family, key] = has.get(key)
    changes = {
        key: value
        for key, value in wanted.items()
        if not _is_same(value, seen.get(key)) and not _is_same(value, now.get(key))
    }
    return changes, flips


def _refuse_stale(
    wish: wishes.Wish,
    why: wishes.NotSaved,
    changes: Mapping[str, Any],
    seen: Mapping[str, Any],
    now: Mapping[str, Any],
) -> None:
    for key in changes:
        if not _is_same(seen.get(key), now.get(key)):
            stale = errors.Stale(
                f"{key} of {wish.name}", wishes.shown(seen.get(key)), wishes.shown(now.get(key))
            )
            why.obstacles.append(wishes.Obstacle(key=key, message=str(stale)))
            why.now[key] = now.get(key)


def _refuse_stale_flips(
    wish: wishes.Wish, why: wishes.NotSaved, flips: Flips, seen: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    had, has = wishes.flat(seen), wishes.flat(now)
    for family, key in flips:
        if had.get(key) != has.get(key):
            word = "switch" if family == wishes.SWITCHES else "override"
            stale = errors.Stale(f"The {word} of {key} for {wish.name}", had.get(key), has.get(key))
            why.obstacles.append(wishes.Obstacle(key=family, rest=f".{key}", message=str(stale)))
            for field in (wishes.FLAT, wishes.ENDS):
                told = dict(why.now.get(field) or seen.get(field) or {})
                told.pop(key, None)
                why.now[field] = told | {k: v for k, v in (now.get(field) or {}).items() if k == key}


def _is_same(one: Any, other: Any) -> bool:
    """Compare as JSON; a browser sends other line breaks than it was given."""
    if isinstance(one, str) and isinstance(other, str):
        return inputs.unbroken(one) == inputs.unbroken(other)
    try:
        return schema.same(one, other)
    except RecursionError:
        # Nested too deeply to be stored, as the door will say.
        return False
