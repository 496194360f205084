"""What may name a commit, a branch, a file? Narrow rules of our own, so that git is never asked about a trick."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable

import toolbelt

LONGEST_PATH = 400

# None begins with a dash, so none can be taken for an option; none holds what git's own grammar knows (@{, :, ^{).
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._+-]*[A-Za-z0-9_+-])?"
_BRANCH = re.compile(rf"{_PART}(?:/{_PART})*")
_REVISION = re.compile(rf"(?P<name>{_PART}(?:/{_PART})*)(?:[~^]\d{{0,4}}){{0,3}}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SHORT_NAME = re.compile(r"~\d")
# Not shown either, and of another category than control and format characters.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def is_branch(name: str) -> bool:
    """Say whether this is a plain name of a branch."""
    sound = _BRANCH.fullmatch(name) is not None and len(name) <= 200 and ".." not in name
    return sound and not any(part.endswith(".lock") for part in name.split("/"))


def is_prefix(name: str) -> bool:
    """Say whether this can begin the names of an agent's branches: whole parts, so that it holds no other's."""
    return name.endswith("/") and is_branch(name[:-1])


def is_revision(name: str) -> bool:
    """Say whether this is a branch, tag or commit, with ``~2`` or ``^`` behind it at most."""
    found = _REVISION.fullmatch(name)
    return found is not None and is_branch(found["name"])


def revision(name: str) -> str:
    """Give the name of a commit back, or refuse it."""
    if not is_revision(name):
        raise toolbelt.ToolError(
            f"{name!r} names no commit: give a branch, a tag or a commit, such as main or main~1."
        )
    return name


def commit(name: str) -> str:
    """Give a commit's own (hexadecimal) name back, or refuse it."""
    if not _COMMIT.fullmatch(name):
        raise toolbelt.ToolError(f"{name!r} is not a commit: give at least 7 of its hexadecimal digits.")
    return name


def branch(name: str, prefix: str) -> str:
    """Give the name of a branch that may be written to back, or refuse it."""
    if not is_branch(name):
        raise toolbelt.ToolError(f"{name!r} is not a branch's name: use letters, digits, -, _, . and /.")
    if not name.startswith(prefix):
        raise toolbelt.ToolError(
            f"{name!r} is protected: you write to branches whose name begins with {prefix}."
        )
    return name


def path(name: str) -> str:
    """Give the path in its one form (no ``./``, no double ``/``; the root is empty), or refuse it."""
    if len(name) > LONGEST_PATH:
        raise toolbelt.ToolError(f"The path is longer than {LONGEST_PATH} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name) or "\\" in name:
        raise toolbelt.ToolError(f"{name!r} is not a path: no control characters, and / between directories.")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise toolbelt.ToolError(
            f"{name!r} leaves the repository: write paths from its root on, without '..'."
        )
    return "/".join(parts)


def file_path(name: str) -> str:
    """Give the path of a file back in its one form, or refuse it."""
    found = path(name)
    if not found or name.endswith("/"):
        raise toolbelt.ToolError(f"{name!r} is a directory: name a file.")
    return found


def path_to_write(name: str, protected: Iterable[str]) -> str:
    """Give the path of a file that may be written back in its one form, or refuse it."""
    found = file_path(name)
    guard([found], protected)
    return found


def guard(paths: Iterable[str], protected: Iterable[str]) -> None:
    """Refuse all of them if one is protected, git's own, or a name that another system would take for another."""
    patterns = [_folded(pattern).strip("/") for pattern in protected]
    for one in paths:
        parts = _folded(one).split("/")
        if any(part == ".git" or _is_ambiguous(part) for part in [*parts, *one.split("/")]):
            raise toolbelt.ToolError(
                f"{one!r} is not written: some system takes it for another file, or it is git's."
            )
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        for pattern in patterns:
            if any(fnmatch.fnmatchcase(name, pattern) for name in (above if "/" in pattern else parts)):
                raise toolbelt.ToolError(
                    f"{one} is protected by the operator ({pattern}): it is not changed here."
                )


def _folded(name: str) -> str:
    """Give the form in which names are compared: as the file system that forgives most would."""
    return unicodedata.normalize("NFKC", name).casefold()


def _is_ambiguous(part: str) -> bool:
    # Invisible characters vanish on macOS, dots and spaces at the end on Windows, which also knows GIT~1 and a:stream.
    return (
        not part
        or part in (".", "..")
        or part[-1] in ". "
        or part[0] == " "
        or any(character in '\\:*?"<>|' or unicodedata.category(character)[0] == "C" for character in part)
        or _SHORT_NAME.search(part) is not None
        or _IGNORED.search(part) is not None
    )
