"""The notes of one agent. Each note has its own key in the state, and every key begins with the agent.

An agent's name holds no ``/``, so ``ada/`` begins the keys of ada alone, not those of ada2.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from toolbelt import RuntimeAPI, ToolError
from toolbelt.plugins import config

MAX_TAGS, MAX_TAG_LENGTH = 10, 40

_ID = re.compile(r"[0-9a-f]{8}")
# Characters that no note needs and that not every database stores. Line breaks and tabs are allowed.
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@pydantic_dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The maximum length of a note, and the maximum number per agent. Every search reads all notes of the agent."""

    max_note_length: Annotated[config.Whole, Field(ge=1, le=50_000)] = 4_000
    max_notes: Annotated[config.Whole, Field(ge=1, le=10_000)] = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note of an agent. ``created`` is when it was written, in ISO 8601 and UTC."""

    id: str
    text: str
    tags: tuple[str, ...] = ()
    created: str = ""


def clean(text: str) -> str:
    """Return the text without characters that cannot be stored, and without white space around it."""
    return _UNSTORABLE.sub("", text).strip()


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the normalized tags, without duplicates, in the given order: ``Home `` becomes ``home``."""
    return tuple(
        dict.fromkeys(tag for tag in (" ".join(clean(raw_tag).casefold().split()) for raw_tag in tags) if tag)
    )


class AgentNotes:
    """The notes of the agent that makes the current call."""

    def __init__(self, runtime: RuntimeAPI, allowed: Limits) -> None:
        if runtime.call is None or not runtime.call.agent:
            raise ToolError("Notes belong to an agent, and this call is not by an agent.")
        self._state = runtime.state
        self._prefix = f"{runtime.call.agent}/"
        self._allowed = allowed

    async def all(self) -> list[Note]:
        """Return all notes, newest first."""
        stored = await self._state.list(self._prefix)
        # Some databases compare a prefix ignoring case, and Ada's notes are not ada's.
        agent_notes = [
            Note(
                id=key.removeprefix(self._prefix),
                text=value["text"],
                tags=tuple(value["tags"]),
                created=value["made"],
            )
            for key, value in stored.items()
            if key.startswith(self._prefix)
        ]
        return sorted(agent_notes, key=lambda note: (note.created, note.id), reverse=True)

    async def add(self, text: str, tags: Sequence[str], created: dt.datetime) -> tuple[Note, bool]:
        """Store a note. Return it, and whether it is new. If the text is already stored, only add the tags."""
        text = clean(text)
        if not text:
            raise ToolError("The text is empty. Write what to remember.")
        if len(text) > self._allowed.max_note_length:
            raise ToolError(
                f"The note has {len(text)} characters; at most {self._allowed.max_note_length} are allowed. "
                "Shorten it, or split it into several notes."
            )
        notes = await self.all()
        same = next((note for note in notes if note.text == text), None)
        if same is None and len(notes) >= self._allowed.max_notes:
            raise ToolError(
                f"You have {len(notes)} notes; at most {self._allowed.max_notes} are allowed. "
                "Forget notes that you no longer need, then try again."
            )
        note = Note(
            id=same.id if same else secrets.token_hex(4),
            text=text,
            tags=clean_tags([*(same.tags if same else ()), *tags])[:MAX_TAGS],
            created=same.created if same else created.isoformat(timespec="microseconds"),
        )
        if note != same:
            value = {"text": note.text, "tags": list(note.tags), "made": note.created}
            await self._state.set(self._prefix + note.id, value)
        return note, same is None

    async def remove(self, note_id: str) -> None:
        """Delete a note. Another agent's note is refused like one that does not exist."""
        # Only what can be an id becomes part of a key.
        if not _ID.fullmatch(note_id) or not await self._state.delete(self._prefix + note_id):
            raise ToolError(
                f"You have no note {note_id!r}. memory__list and memory__search return the ids of your notes."
            )
