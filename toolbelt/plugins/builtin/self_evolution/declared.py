"""What does the plugin offer? The eight tools of self evolution, with hints that are true to what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import names, reading, toolkit

MOST_LINES = 2_000
MOST_ENTRIES = 1_000

_LOOKS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
# What is pushed leaves this machine, and a check runs the repository's own code.
_REACHES = {**_CHANGES, "openWorldHint": True}


def _text(description: str, longest: int, *, least: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, "minLength": least, "maxLength": longest, **more}


def _number(description: str, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": most, "default": default}


def _switch(description: str, default: bool) -> dict[str, Any]:
    return {"type": "boolean", "description": description, "default": default}


def _object(required: tuple[str, ...], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _many(description: str, least: int, most: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": description, "minItems": least, "maxItems": most, "items": item}


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
        input_schema=_object(required, properties),
    )


_PATH = _text("Path from the repository's root.", names.LONGEST_PATH)
_BELOW = _text("Path from the repository's root. Empty: the root.", names.LONGEST_PATH, least=0, default="")
_REF = _text("Branch, tag or commit, such as main or main~1.", 200, default="HEAD")
_BRANCH = _text(
    "A branch of your own, such as evolve/fix-login. One that is not there yet begins at the base branch.",
    200,
)
_MESSAGE = _text("Commit message: a subject line, an empty line, the reasons.", 2_000, least=10)
_HEAD = _text(
    "The commit that you worked from. If the branch has moved since, nothing is changed.", 64, least=7
)
_CONTENT = {"type": "string", "maxLength": reading.LARGEST}

TOOLS = (
    _tool(
        toolkit.READ_FILE,
        "Read a file",
        "Read a text file of the repository at a branch, tag or commit, whole or a range of lines.",
        _LOOKS,
        ("path",),
        path=_PATH,
        ref=_REF,
        first_line=_number("The first line to give.", 10_000_000, 1),
        lines=_number("How many lines at most.", MOST_LINES, MOST_LINES),
    ),
    _tool(
        toolkit.LIST_FILES,
        "List files",
        "List a directory of the repository at a branch, tag or commit, with sizes.",
        _LOOKS,
        (),
        path=_BELOW,
        ref=_REF,
        recursive=_switch(f"Whether to list all files below it, at most {MOST_ENTRIES}.", False),
    ),
    _tool(
        toolkit.SEARCH_CODE,
        "Search the code",
        "Find the lines that hold a text, in the files of a branch, tag or commit.",
        _LOOKS,
        ("query",),
        query=_text("The text to find; with regex, an RE2 expression. It is looked for line by line.", 1_000),
        regex=_switch("Whether the query is an expression.", False),
        path=_BELOW,
        ref=_REF,
        limit=_number("How many lines at most.", 200, 50),
    ),
    _tool(
        toolkit.PATCH_FILES,
        "Patch files",
        "Commit exact replacements to a branch of your own, several files in one commit. Each old text must stand in "
        "its file exactly once, or as often as count says; if one does not, nothing is changed. Does not push.",
        _CHANGES,
        ("branch", "message", "patches"),
        branch=_BRANCH,
        message=_MESSAGE,
        head=_HEAD,
        patches=_many(
            "The replacements, in order.",
            1,
            100,
            _object(
                ("path", "old", "new"),
                {
                    "path": _PATH,
                    "old": {
                        **_CONTENT,
                        "minLength": 1,
                        "description": "The text to replace, to the character.",
                    },
                    "new": {**_CONTENT, "description": "The text to put there."},
                    "count": _number("How often the old text stands there; all are replaced.", 1_000, 1),
                },
            ),
        ),
    ),
    _tool(
        toolkit.COMMIT_PUSH,
        "Commit and push",
        "Commit whole files to a branch of your own in one commit, and push the branch where the operator allows that. "
        "Without files it only pushes.",
        _REACHES,
        ("branch",),
        branch=_BRANCH,
        message=_MESSAGE,
        head=_HEAD,
        files=_many(
            "The files as they shall be afterwards.",
            0,
            50,
            _object(
                ("path",),
                {
                    "path": _PATH,
                    "content": {**_CONTENT, "description": "The whole new text."},
                    "delete": _switch("Delete the file instead.", False),
                },
            ),
        ),
    ),
    _tool(
        toolkit.COMPARE_COMMITS,
        "Compare commits",
        "Compare two branches, tags or commits: the commits that head has and base has not, and their diff.",
        _LOOKS,
        ("base", "head"),
        base=_text("The older side.", 200),
        head=_text("The newer side.", 200),
        paths=_many("Only files at or below these paths.", 0, 50, _PATH),
    ),
    _tool(
        toolkit.REVERT_COMMIT,
        "Revert a commit",
        "Make a new commit on a branch of your own that undoes one commit of that branch. Changes nothing where later "
        "commits touch the same lines. Does not push.",
        _CHANGES,
        ("commit", "branch", "reason"),
        commit=_text("The commit to undo, by its hexadecimal name.", 64, least=7),
        branch=_BRANCH,
        reason=_text("Why. It goes into the commit message.", 2_000, least=10),
    ),
    _tool(
        toolkit.CHECK_DEPLOY,
        "Check a commit",
        "Say how a branch or commit stands: how far it is from the base branch, whether it was pushed, and whether "
        "the operator's check passes on it.",
        _REACHES,
        (),
        ref=_REF,
        run=_switch("Whether to run the operator's check, which can take minutes.", True),
    ),
)
