"""What do the editors of loadouts, sub-apps and toolkits share? Reading what was typed, and telling what of it is new.

A draft is one entry as somebody typed it: sound or not, it can be shown again as it is. What a draft leaves as the page
showed it counts as unchanged, however a browser wrote its line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from toolbelt.core import errors, keys

LONGEST_REASON = 500
_T = TypeVar("_T")


class Draft(Protocol):
    """One entry as it was typed."""

    @property
    def name(self) -> str: ...

    def entry(self) -> dict[str, Any]:
        """Give every key that the editor shows; None stands for one that has its default."""
        ...


class Wanted(NamedTuple):
    """What is to change, and what the page showed of it; as control.proposals takes them."""

    changes: dict[str, Any]
    was: dict[str, Any]


class Act(NamedTuple):
    """What a button of an editor does to the draft: ``up``, ``down`` or ``drop`` a row of a list, or ``add`` one."""

    verb: str
    rows: str
    place: int


def wanted(draft: Draft, shown: Draft, was: Mapping[str, Any]) -> Wanted:
    """Say what the draft changes; ``shown`` is the draft that the page began with, ``was`` the entry behind it."""
    before = shown.entry()
    changes = {key: value for key, value in draft.entry().items() if value != before[key]}
    return Wanted(changes, {key: was.get(key) for key in changes})


def was(posted: Mapping[str, Any]) -> dict[str, Any]:
    """Read the entry that the page was made from; nonsense is nothing."""
    try:
        read = json.loads(str(posted.get("was", "")))
        # Half a character can be written in JSON, and shown nowhere.
        json.dumps(read, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def act(posted: Mapping[str, Any]) -> Act | None:
    """Read which button of the editor was pressed: ``up-members-2``."""
    found = re.fullmatch(r"(up|down|drop|add)-(\w+)-(\d{1,4})", str(posted.get("act", "")))
    return Act(found[1], found[2], int(found[3])) if found else None


def acted(rows: Sequence[_T], act: Act) -> tuple[_T, ...]:
    """Move a row, or take it out; what cannot be done leaves the rows as they are."""
    done, place = list(rows), act.place
    if place >= len(done):
        return tuple(done)
    if act.verb == "drop":
        del done[place]
    other = {"up": place - 1, "down": place + 1}.get(act.verb, -1)
    if 0 <= other < len(done):
        done[place], done[other] = done[other], done[place]
    return tuple(done)


def text(typed: str) -> str:
    """Give a typed text as it is stored: a browser ends lines with CR and LF, and drops a line break at its start."""
    return typed.replace("\r\n", "\n").replace("\r", "\n").strip()


def lines(typed: str) -> list[str]:
    """Give the lines that hold something."""
    return [line.strip() for line in text(typed).split("\n") if line.strip()]


def names(typed: str) -> list[str]:
    """Give the names in a text, parted by spaces, commas or lines."""
    return [name for name in re.split(r"[\s,]+", typed) if name]


def ticked(given: Iterable[str], stored: Sequence[str]) -> list[str]:
    """Give what is ticked or named, each once whatever its case: what was there in its stored order and spelling."""
    folded = {keys.fold(name): name for name in reversed(list(given))}
    kept = [name for name in stored if folded.pop(keys.fold(name), None) is not None]
    return kept + list(reversed(folded.values()))


def problems(address: str, refused: Iterable[errors.Problem]) -> dict[str, str]:
    """Sort what is wrong by the place in the entry: ``members[2]``, ``triggers[0].any[1]``; what is about something
    else is under the empty name.
    """
    said: dict[str, list[str]] = {}
    for problem in refused:
        place = problem.path.removeprefix(f"{address}.")
        ours = place != problem.path
        said.setdefault(place if ours else "", []).append(problem.message if ours else str(problem))
    return {place: " ".join(messages) for place, messages in said.items()}


def at(found: Mapping[str, str], *places: str) -> str:
    """Say what is wrong at these places or within them."""
    return " ".join(
        message
        for place, message in found.items()
        if any(place == one or place.startswith((f"{one}.", f"{one}[")) for one in places)
    )
