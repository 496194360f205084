"""Validation of the names that are passed to git: commits, branches and paths.

The rules are narrow, so that no name is an option or an operator of git's.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable

import toolbelt

MAX_PATH_LENGTH = 400

# None begins with a dash, so none is taken for an option; none contains git's own operators (@{, :, ^{).
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._+-]*[A-Za-z0-9_+-])?"
_BRANCH = re.compile(rf"{_PART}(?:/{_PART})*")
_REVISION = re.compile(rf"(?P<name>{_PART}(?:/{_PART})*)(?:[~^]\d{{0,4}}){{0,3}}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SHORT_NAME = re.compile(r"~\d")
# Invisible, but in another Unicode category than control and format characters.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def is_branch(name: str) -> bool:
    """Return whether this is a plain branch name."""
    is_plain = _BRANCH.fullmatch(name) is not None and len(name) <= 200 and ".." not in name
    return is_plain and not any(part.endswith(".lock") for part in name.split("/"))


def is_revision(name: str) -> bool:
    """Return whether this is a branch, tag or commit, at most with ``~2`` or ``^`` after it."""
    match = _REVISION.fullmatch(name)
    return match is not None and is_branch(match["name"])


def check_commit(name: str) -> str:
    """Return a commit's hexadecimal name. Raise ToolError if it is not one."""
    if not _COMMIT.fullmatch(name):
        raise toolbelt.ToolError(f"{name!r} is not a commit. Send at least 7 of its hexadecimal digits.")
    return name


def check_branch(name: str, prefix: str) -> str:
    """Return a branch that may be written to. Raise ToolError if it is not one."""
    if not is_branch(name):
        raise toolbelt.ToolError(f"{name!r} is not a valid branch name. Use letters, digits, -, _, . and /.")
    if not name.startswith(prefix):
        raise toolbelt.ToolError(f"{name!r} is protected. Write to a branch whose name begins with {prefix}.")
    return name


def normalize(path: str) -> str:
    """Return the path without ``./`` and double ``/``; the root is empty. Raise ToolError if it is not allowed."""
    if len(path) > MAX_PATH_LENGTH:
        raise toolbelt.ToolError(f"The path is longer than {MAX_PATH_LENGTH} characters.")
    if "\\" in path or any(unicodedata.category(character) == "Cc" for character in path):
        raise toolbelt.ToolError(
            f"{path!r} is not a valid path. Use / between directories, and no control characters."
        )
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise toolbelt.ToolError(
            f"{path!r} leaves the repository. Use paths relative to its root, without '..'."
        )
    return "/".join(parts)


def normalize_file(path: str) -> str:
    """Return the path of a file as :func:`normalize` does. Raise ToolError for a directory's."""
    normalized = normalize(path)
    if not normalized or path.endswith("/"):
        raise toolbelt.ToolError(f"{path!r} is a directory. Name a file.")
    return normalized


def check_writable(paths: Iterable[str], protected: Iterable[str]) -> None:
    """Raise ToolError if one path is protected, git's own, or the name of another file on some system."""
    patterns = [_fold(pattern).strip("/") for pattern in protected]
    for path in paths:
        parts = _fold(path).split("/")
        if any(part == ".git" or _is_ambiguous(part) for part in [*parts, *path.split("/")]):
            raise toolbelt.ToolError(
                f"{path!r} cannot be written: it belongs to git, or some systems treat it as another file."
            )
        directories = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        for pattern in patterns:
            names = directories if "/" in pattern else parts
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                raise toolbelt.ToolError(
                    f"{path} is protected by the operator ({pattern}) and cannot be changed."
                )


def _fold(name: str) -> str:
    """Return the form in which names are compared, as the least strict file system compares them."""
    return unicodedata.normalize("NFKC", name).casefold()


def _is_ambiguous(part: str) -> bool:
    # Invisible characters vanish on macOS, dots and spaces at the end on Windows, which also knows GIT~1 and a:stream.
    return (
        part in ("", ".", "..")
        or part[-1] in ". "
        or part[0] == " "
        or any(character in '\\:*?"<>|' or unicodedata.category(character)[0] == "C" for character in part)
        or _SHORT_NAME.search(part) is not None
        or _IGNORED.search(part) is not None
    )
