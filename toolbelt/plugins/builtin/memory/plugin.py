"""The memory plugin: notes that an agent keeps across conversations."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from toolbelt import FunctionPlugin, RuntimeAPI, tool
from toolbelt.plugins import config
from toolbelt.plugins.builtin.memory import notes, ranking, toolkit

MAX_LISTED = 50
EXCERPT_LENGTH = 200

Tag = Annotated[str, Field(min_length=1, max_length=notes.MAX_TAG_LENGTH)]


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Memory(FunctionPlugin):
    """Notes per agent. Config: the fields of ``notes.Limits``."""

    def __init__(self, now: Callable[[], dt.datetime] = _now) -> None:
        super().__init__(
            name="memory",
            namespace="memory",
            title="Memory",
            description="Stores notes across conversations, separately for each agent.",
            category="memory",
            functions=[self.remember, self.search, self.list_notes, self.forget],
            toolkits=[toolkit.Notes()],
        )
        self._now = now

    async def initialize(self, runtime: RuntimeAPI) -> None:
        super().initialize(runtime)
        self._limits = config.read(notes.Limits, "memory", runtime.config)

    @tool(
        title="Remember",
        annotations={
            "openWorldHint": False,
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
        },
    )
    async def remember(
        self,
        runtime: RuntimeAPI,
        text: Annotated[str, Field(min_length=1)],
        tags: Annotated[Sequence[Tag], Field(max_length=notes.MAX_TAGS)] = (),
    ) -> dict[str, Any]:
        """Save a note that you can find in later conversations. The same text is saved only once.

        Args:
            text: One fact, understandable without context.
            tags: Tags to list the note by, such as travel.
        """
        note, is_new = await notes.AgentNotes(runtime, self._limits).add(text, tags, self._now())
        return {"id": note.id, "tags": list(note.tags), "new": is_new}

    @tool(title="Search notes", annotations={"openWorldHint": False, "readOnlyHint": True})
    async def search(
        self,
        runtime: RuntimeAPI,
        query: Annotated[str, Field(min_length=1)],
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> dict[str, Any]:
        """Find notes by their words, best matches first, with their full text.

        Args:
            query: Words that the note may contain.
        """
        stored = await notes.AgentNotes(runtime, self._limits).all()
        # Ranking thousands of notes takes a while, and all plugins share this event loop.
        best = await asyncio.to_thread(ranking.rank, stored, query, limit)
        return {"notes": [_as_json(note) for note in best], "searched": len(stored)}

    @tool(name="list", title="List notes", annotations={"openWorldHint": False, "readOnlyHint": True})
    async def list_notes(
        self,
        runtime: RuntimeAPI,
        tag: Tag | SkipJsonSchema[None] = None,
        start: Annotated[int, Field(ge=0)] = 0,
    ) -> dict[str, Any]:
        """List notes, newest first, 50 at a time, each with its first 200 characters.

        Args:
            tag: Only list notes with this tag.
            start: next_start of the previous result.
        """
        stored = await notes.AgentNotes(runtime, self._limits).all()
        if tag is not None:
            tags = set(notes.clean_tags([tag]))
            stored = [note for note in stored if tags & set(note.tags)]
        end = start + MAX_LISTED
        return {
            "notes": [_as_json(note, EXCERPT_LENGTH) for note in stored[start:end]],
            "total": len(stored),
            "next_start": end if end < len(stored) else None,
        }

    @tool(
        title="Forget a note",
        annotations={
            "openWorldHint": False,
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
        },
    )
    async def forget(
        self, runtime: RuntimeAPI, note_id: Annotated[str, Field(alias="id", min_length=1, max_length=64)]
    ) -> dict[str, Any]:
        """Delete a note permanently.

        Args:
            note_id: The note's id.
        """
        await notes.AgentNotes(runtime, self._limits).remove(note_id)
        return {"id": note_id, "forgotten": True}


def _as_json(note: notes.Note, max_length: int | None = None) -> dict[str, Any]:
    text = note.text if max_length is None or len(note.text) <= max_length else note.text[:max_length] + "…"
    return {"id": note.id, "text": text, "tags": list(note.tags), "made": note.created}
