"""What does the plugin offer? Five tools, with schemas and hints that are true to what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.files import paths, toolkit

MOST_LINES = 2_000
MOST_ENTRIES = 1_000
MOST_MATCHES = 200
LONGEST_TEXT = 2_000_000

_LOOKS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}


def _path(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, "maxLength": paths.LONGEST, **more}


def _whole(description: str, default: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "description": description, "default": default, "minimum": 1, "maximum": most}


def _tool(
    name: str,
    title: str,
    description: str,
    hints: Mapping[str, Any],
    required: tuple[str, ...],
    **properties: Mapping[str, Any],
) -> toolbelt.ToolDefinition:
    return toolbelt.ToolDefinition(
        name=name,
        title=title,
        description=description,
        annotations=hints,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


TOOLS = (
    _tool(
        toolkit.READ,
        "Read a file",
        "Read a text file in UTF-8, whole or a range of lines.",
        _LOOKS,
        ("path",),
        path=_path("The file, from the root on.", minLength=1),
        first_line=_whole("The first line to give.", 1, 10_000_000),
        lines=_whole("How many lines at most.", MOST_LINES, MOST_LINES),
    ),
    _tool(
        toolkit.LIST,
        "List a directory",
        "List what is in a directory: names, kinds and sizes, in order of names.",
        _LOOKS,
        (),
        path=_path("The directory, from the root on. Empty: the root.", default=""),
        depth=_whole("How many levels of directories to go into.", 1, 10),
    ),
    _tool(
        toolkit.SEARCH,
        "Search files",
        "Find the lines that hold a text, in the text files below a directory.",
        _LOOKS,
        ("query",),
        query={
            "type": "string",
            "description": "The text to find; with regex, an RE2 expression. It is looked for line by line.",
            "minLength": 1,
            "maxLength": 1_000,
        },
        regex={"type": "boolean", "description": "Whether the query is an expression.", "default": False},
        ignore_case={"type": "boolean", "description": "Whether case does not count.", "default": False},
        path=_path("A directory or file, from the root on. Empty: the root.", default=""),
        glob={
            "type": "string",
            "description": "Only files whose name or path fits, such as *.py or src/*.md.",
            "default": "",
            "maxLength": 200,
        },
        limit=_whole("How many lines at most.", 50, MOST_MATCHES),
    ),
    _tool(
        toolkit.WRITE,
        "Write a file",
        "Write a whole text file; directories on its way are made. One that is there is replaced only with overwrite.",
        _CHANGES,
        ("path", "content"),
        path=_path("The file, from the root on.", minLength=1),
        content={"type": "string", "description": "The whole text.", "maxLength": LONGEST_TEXT},
        overwrite={"type": "boolean", "description": "Whether to replace a file.", "default": False},
    ),
    _tool(
        toolkit.PATCH,
        "Patch a file",
        "Replace an exact text in a file. It must stand there once, or exactly as often as count says.",
        _CHANGES,
        ("path", "old", "new"),
        path=_path("The file, from the root on.", minLength=1),
        old={
            "type": "string",
            "description": "The text to replace, to the character, with enough around it to be unique.",
            "minLength": 1,
            "maxLength": LONGEST_TEXT,
        },
        new={"type": "string", "description": "The text to put there.", "maxLength": LONGEST_TEXT},
        count=_whole("How often the old text stands there; all of them are replaced.", 1, 10_000),
    ),
)
