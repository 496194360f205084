"""Which notes has this agent? One note under one key, and every key begins with the agent.

An agent's name holds no ``/``, so ``ada/`` begins the keys of ada alone, not those of ada2.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt import RuntimeAPI, ToolError

LONGEST_NOTE = 4_000
MOST_NOTES = 1_000
MOST_TAGS, LONGEST_TAG = 10, 40
# Bounds of what an operator may choose: every search reads all notes of its agent.
_CEILINGS = {"longest_note": 50_000, "most_notes": 10_000}

_ID = re.compile(r"[0-9a-f]{8}")
# Signs that no note needs and that not every database stores; line breaks and tabs stay.
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a note may be, and how many of them an agent may have."""

    longest_note: int = LONGEST_NOTE
    most_notes: int = MOST_NOTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that an agent wrote down. ``made`` is when, in ISO 8601 and UTC."""

    id: str
    text: str
    tags: tuple[str, ...] = ()
    made: str = ""


def limits(config: Mapping[str, Any]) -> Limits:
    """Read the limits out of the plugin's config. A variable's value arrives as text, and counts as its number."""
    unknown = sorted(set(config) - set(_CEILINGS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no setting of memory: there are {' and '.join(_CEILINGS)}.")
    chosen = {}
    for name, value in config.items():
        text = "" if isinstance(value, bool) else str(value)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= _CEILINGS[name]:
            raise ValueError(f"{name} must be a whole number from 1 to {_CEILINGS[name]}, not {value!r}.")
        chosen[name] = int(text)
    return Limits(**chosen)


def clean(text: str) -> str:
    """Take away what cannot be stored, and white space around."""
    return _UNSTORABLE.sub("", text).strip()


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Write tags in one way, each once, in the order given: ``Home `` is ``home``."""
    return tuple(
        dict.fromkeys(tag for tag in (" ".join(clean(one).casefold().split()) for one in tags) if tag)
    )


class Shelf:
    """The notes of the agent whose call is under way, and of no other."""

    def __init__(self, runtime: RuntimeAPI, allowed: Limits) -> None:
        if runtime.call is None or not runtime.call.agent:
            raise ToolError("Notes belong to an agent, and no agent is calling.")
        self._state = runtime.state
        self._prefix = f"{runtime.call.agent}/"
        self._allowed = allowed

    async def all(self) -> list[Note]:
        """Give every note, the newest first."""
        kept = await self._state.list(self._prefix)
        # Some databases compare a prefix ignoring case, and Ada's notes are not ada's.
        found = [
            Note(
                id=key.removeprefix(self._prefix),
                text=value["text"],
                tags=tuple(value["tags"]),
                made=value["made"],
            )
            for key, value in kept.items()
            if key.startswith(self._prefix)
        ]
        return sorted(found, key=lambda note: (note.made, note.id), reverse=True)

    async def add(self, text: str, tags: Sequence[str], made: dt.datetime) -> tuple[Note, bool]:
        """Keep a note; say whether it is new. The same text again is the note that there is, with the tags of both."""
        text = clean(text)
        if not text:
            raise ToolError("There is nothing to remember: the text is empty.")
        if len(text) > self._allowed.longest_note:
            raise ToolError(
                f"The note has {len(text)} characters, and {self._allowed.longest_note} are the most. "
                "Keep what matters of it, or make several notes of it."
            )
        known = await self.all()
        same = next((note for note in known if note.text == text), None)
        if same is None and len(known) >= self._allowed.most_notes:
            raise ToolError(
                f"You have {len(known)} notes, and {self._allowed.most_notes} are the most. "
                "Forget some that you need no longer, then remember this again."
            )
        note = Note(
            id=same.id if same else secrets.token_hex(4),
            text=text,
            tags=clean_tags([*(same.tags if same else ()), *tags])[:MOST_TAGS],
            made=same.made if same else made.isoformat(timespec="microseconds"),
        )
        if note != same:
            value = {"text": note.text, "tags": list(note.tags), "made": note.made}
            await self._state.set(self._prefix + note.id, value)
        return note, same is None

    async def remove(self, note_id: str) -> None:
        """Forget a note. Another agent's is answered as one that does not exist."""
        # Only what can be an id becomes part of a key.
        if not _ID.fullmatch(note_id) or not await self._state.delete(self._prefix + note_id):
            raise ToolError(
                f"You have no note {note_id!r}. memory__list and memory__search give the ids there are."
            )
