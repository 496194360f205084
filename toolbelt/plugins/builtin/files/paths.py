"""Validation of the paths that agents may use: relative to the root, and below it.

This module checks the text of a path, and :mod:`confined` independently ensures that no access leaves the root.
"""

from __future__ import annotations

import re
import unicodedata

import toolbelt

MAX_LENGTH = 1_000
MAX_NAME_BYTES = 255
MAX_DEPTH = 40

# Invisible characters that some file systems ignore, beside control and format characters.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_SHORT_NAME = re.compile(r"git~\d+")


def parts(path: str) -> tuple[str, ...]:
    """Return the names in the path; none for the root itself (empty, or ``.``). Raise ToolError for a bad path."""
    if len(path) > MAX_LENGTH:
        raise toolbelt.ToolError(f"The path is longer than {MAX_LENGTH} characters.")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in path):
        raise toolbelt.ToolError("A path cannot contain control characters.")
    if "\\" in path:
        raise toolbelt.ToolError(f"Write / between directories, not \\, in {path!r}.")
    if path.startswith("/"):
        raise toolbelt.ToolError(
            f"{path!r} is absolute. Use a path relative to the root, such as notes/today.md."
        )
    names = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in names:
        raise toolbelt.ToolError(
            f"{path!r} contains '..', which is not allowed. Use a path relative to the root."
        )
    if len(names) > MAX_DEPTH:
        raise toolbelt.ToolError(f"The path is deeper than {MAX_DEPTH} directories.")
    for part in names:
        if len(part.encode()) > MAX_NAME_BYTES:
            raise toolbelt.ToolError(f"A name in the path is longer than {MAX_NAME_BYTES} bytes.")
    return names


def file_parts(path: str) -> tuple[str, ...]:
    """Return the names in the path of a file. Raise ToolError if it is the path of a directory."""
    names = parts(path)
    if not names or path.endswith(("/", "/.")):
        raise toolbelt.ToolError(f"{path!r} is a directory. Name a file.")
    return names


def refuse_repository(parts_of_path: tuple[str, ...]) -> None:
    """Raise ToolError for a path below a ``.git`` directory, or a name that a file system may treat as ``.git``."""
    if any(_is_repository(part) for part in parts_of_path):
        raise toolbelt.ToolError("Files below .git belong to git and cannot be written.")


def _is_repository(part: str) -> bool:
    """Return whether any file system would treat the name as ``.git``.

    HFS+ ignores invisible characters. Windows ignores trailing dots and spaces and everything after a colon, and also
    names ``.git`` ``git~1``. Most ignore the case or the width of letters.
    """
    visible = "".join(
        character for character in _IGNORED.sub("", part) if unicodedata.category(character)[0] != "C"
    )
    folded = unicodedata.normalize("NFKC", visible).casefold().partition(":")[0].rstrip(". ")
    return folded == ".git" or _SHORT_NAME.fullmatch(folded) is not None


def shown(parts_of_path: tuple[str, ...]) -> str:
    """Return the path as it is shown in results and messages."""
    return "/".join(parts_of_path) or "."


def readable(parts_of_path: tuple[str, ...]) -> str:
    """Return the path as text for JSON. Bytes that are not text are replaced, so such a file cannot be named."""
    return shown(parts_of_path).encode(errors="replace").decode()
