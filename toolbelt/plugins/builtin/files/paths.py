"""Which paths may an agent name? Those from the root downwards, in plain words; the disk has no say here.

Being well formed is the first of two locks. The second, in :mod:`confined`, holds whatever a path says.
"""

from __future__ import annotations

import re
import unicodedata

import toolbelt

LONGEST = 1_000
LONGEST_PART = 255
DEEPEST = 40

# What is not shown, and some file systems do not see: of the control and format characters' kind, or as good as that.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_SHORT_NAME = re.compile(r"git~\d+")


def parts(path: str) -> tuple[str, ...]:
    """Take the path apart; none for the root itself (empty, or ``.``). Raises ToolError in words for a model."""
    if len(path) > LONGEST:
        raise toolbelt.ToolError(f"The path is longer than {LONGEST} characters.")
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in path):
        raise toolbelt.ToolError("A path holds no control characters.")
    if "\\" in path:
        raise toolbelt.ToolError(f"Write / between directories, not \\, in {path!r}.")
    if path.startswith("/"):
        raise toolbelt.ToolError(
            f"{path!r} is absolute: write paths from the root on, such as notes/today.md."
        )
    found = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in found:
        raise toolbelt.ToolError(
            f"{path!r} leads upwards: '..' is not taken, even where it would stay inside."
        )
    if len(found) > DEEPEST:
        raise toolbelt.ToolError(f"The path is deeper than {DEEPEST} directories.")
    for part in found:
        try:
            length = len(part.encode())
        except UnicodeEncodeError:
            raise toolbelt.ToolError("The path holds half a character, which no file's name can.") from None
        if length > LONGEST_PART:
            raise toolbelt.ToolError(f"A name in a path has at most {LONGEST_PART} bytes.")
    return found


def file_parts(path: str) -> tuple[str, ...]:
    """Take a file's path apart: it names something below the root."""
    found = parts(path)
    if not found or path.endswith(("/", "/.")):
        raise toolbelt.ToolError(f"{path!r} is a directory: name a file.")
    return found


def refuse_repository(parts_of_path: tuple[str, ...]) -> None:
    """Refuse to write what git itself may run or obey: anything below a ``.git``, or what may be taken for it."""
    if any(_is_repository(part) for part in parts_of_path):
        raise toolbelt.ToolError("What is below .git is git's own and is not written here.")


def _is_repository(part: str) -> bool:
    """Return whether the file system that forgives most would take the name for ``.git``.

    HFS+ passes over characters that are not shown; Windows over dots and spaces at the end and what is behind a colon,
    and knows ``.git`` as ``git~1``; most take letters of another case or width for the same.
    """
    seen = "".join(one for one in _IGNORED.sub("", part) if unicodedata.category(one)[0] != "C")
    folded = unicodedata.normalize("NFKC", seen).casefold().partition(":")[0].rstrip(". ")
    return folded == ".git" or _SHORT_NAME.fullmatch(folded) is not None


def shown(parts_of_path: tuple[str, ...]) -> str:
    """Write the path as answers have it."""
    return "/".join(parts_of_path) or "."
