"""Which tools does memory offer, and what does each answer?"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt import RuntimeAPI, ToolDefinition, ToolError, ToolPlugin
from toolbelt.plugins.builtin.memory import notes, ranking, toolkit

FEW, MOST_FOUND, MOST_LISTED = 5, 20, 50
_BEGINNING = 200


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _define(
    name: str, title: str, description: str, properties: Mapping[str, Any], *required: str, **hints: bool
) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        title=title,
        description=description,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
        annotations={"openWorldHint": False, **hints},
    )


_TAG = {"type": "string", "minLength": 1, "maxLength": notes.LONGEST_TAG}
TOOLS = (
    _define(
        toolkit.REMEMBER,
        "Remember",
        "Keep a note that you can find again in later conversations. The same text is never kept twice.",
        {
            "text": {
                "type": "string",
                "minLength": 1,
                "description": "One thing, in words that stand alone.",
            },
            "tags": {
                "type": "array",
                "items": _TAG,
                "maxItems": notes.MOST_TAGS,
                "description": "Such as: travel.",
            },
        },
        "text",
        readOnlyHint=False,
        destructiveHint=False,
        idempotentHint=True,
    ),
    _define(
        toolkit.SEARCH,
        "Search notes",
        "Find notes by their words, the best first, in full.",
        {
            "query": {"type": "string", "minLength": 1, "description": "The words that the note would hold."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FEW},
        },
        "query",
        readOnlyHint=True,
    ),
    _define(
        toolkit.LIST,
        "List notes",
        f"List notes, the newest first, {MOST_LISTED} at a time, each by its first {_BEGINNING} characters.",
        {
            "tag": {**_TAG, "description": "Only notes with this tag."},
            "start": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "next_start of the last answer.",
            },
        },
        readOnlyHint=True,
    ),
    _define(
        toolkit.FORGET,
        "Forget a note",
        "Forget one note for good.",
        {
            "id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "The id that the note came with.",
            }
        },
        "id",
        readOnlyHint=False,
        destructiveHint=True,
        idempotentHint=False,
    ),
)


class Memory(ToolPlugin):
    """Notes per agent. Config: ``longest_note`` (characters) and ``most_notes`` (per agent)."""

    name = "memory"
    namespace = "memory"
    title = "Memory"
    description = "Notes that an agent keeps across conversations, each agent its own."
    category = "memory"
    tools = TOOLS
    toolkits = (toolkit.Notes(),)

    def __init__(self, now: Callable[[], dt.datetime] = _now) -> None:
        self._now = now

    async def initialize(self, runtime: RuntimeAPI) -> None:
        self._runtime = runtime
        self._limits = notes.limits(runtime.config)

    async def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        shelf = notes.Shelf(self._runtime, self._limits)
        match tool_name:
            case toolkit.REMEMBER:
                note, new = await shelf.add(args["text"], args.get("tags", ()), self._now())
                return {"id": note.id, "tags": list(note.tags), "new": new}
            case toolkit.SEARCH:
                known = await shelf.all()
                # Thousands of notes take a while to rank, and every plugin shares this event loop.
                best = await asyncio.to_thread(ranking.rank, known, args["query"], args.get("limit", FEW))
                return {"notes": [_told(note) for note in best], "searched": len(known)}
            case toolkit.LIST:
                return _page(await shelf.all(), args.get("tag", ""), args.get("start", 0))
            case toolkit.FORGET:
                await shelf.remove(args["id"])
                return {"id": args["id"], "forgotten": True}
        raise ToolError(f"memory has no tool {tool_name!r}.")


def _page(known: list[notes.Note], tag: str, start: int) -> dict[str, Any]:
    wanted = notes.clean_tags([tag])
    found = [note for note in known if not tag or set(wanted) & set(note.tags)]
    end = start + MOST_LISTED
    return {
        "notes": [_told(note, _BEGINNING) for note in found[start:end]],
        "total": len(found),
        "next_start": end if end < len(found) else None,
    }


def _told(note: notes.Note, longest: int | None = None) -> dict[str, Any]:
    text = note.text if longest is None or len(note.text) <= longest else note.text[:longest] + "…"
    return {"id": note.id, "text": text, "tags": list(note.tags), "made": note.made}
