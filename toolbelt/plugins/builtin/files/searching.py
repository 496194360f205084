"""Where below a directory does a text stand? In linear time (RE2), and within limits that the answer admits to."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import re2

import toolbelt
from toolbelt.plugins.builtin.files import confined, paths

MOST_FILES = 20_000
MOST_BYTES = 100_000_000
MOST_SECONDS = 10.0
LONGEST_LINE = 300
_ROOM = 8 << 20


@dataclass(slots=True, kw_only=True)
class Search:
    """What was found so far, and what ended the search before its end (empty: nothing did)."""

    most: int
    matches: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    skipped: int = 0
    stopped_by: str = ""
    until: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)

    def is_over(self) -> bool:
        """Say whether a limit was reached, and keep which."""
        if not self.stopped_by:
            if len(self.matches) >= self.most:
                self.stopped_by = f"{self.most} matches"
            elif self.files >= MOST_FILES or self.bytes >= MOST_BYTES:
                self.stopped_by = f"{self.files} files with {self.bytes} bytes"
            elif time.monotonic() > self.until:
                self.stopped_by = f"{MOST_SECONDS:.0f} seconds"
        return bool(self.stopped_by)


def compiled(query: str, *, regex: bool, ignore_case: bool) -> Any:
    """Compile what to look for; a plain text is an expression that stands for itself."""
    options = re2.Options()
    options.literal = not regex
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = _ROOM
    try:
        return re2.compile(query.encode(), options=options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise toolbelt.ToolError(f"{query!r} is not an expression for RE2: {reason}.") from None
    except UnicodeEncodeError:
        raise toolbelt.ToolError("The query holds half a character, which no file can.") from None


def run(
    root: confined.Root, parts: tuple[str, ...], pattern: Any, *, glob: str, largest: int, most: int
) -> Search:
    """Search the file, or every text file below the directory. Links, ``.git`` and large files are passed over."""
    search = Search(most=most)
    with root.directory(parts[:-1]) as parent:
        below = confined.enter(parent, parts[-1]) if parts else os.dup(parent)
        if below is None:
            _search_file(search, parent, parts, pattern, largest, root.hard_links, named=True)
            return search
    with contextlib.closing(_files(search, below, parts)) as files:
        for directory, found in files:
            names = (found[-1], "/".join(found))
            if glob and not any(fnmatch.fnmatchcase(name, glob) for name in names):
                continue
            _search_file(search, directory, found, pattern, largest, root.hard_links, named=False)
    return search


def _files(search: Search, descriptor: int, parts: tuple[str, ...]) -> Generator[tuple[int, tuple[str, ...]]]:
    """Give the regular files below, each with its directory, opened; closes ``descriptor``."""
    try:
        found, complete = confined.entries(descriptor)
        if not complete:
            search.stopped_by = f"a directory of more than {len(found)} names"
        for entry in found:
            if search.is_over():
                return
            if entry.kind == "file":
                yield descriptor, (*parts, entry.name)
            elif entry.kind == "directory" and entry.name != ".git" and len(parts) < paths.DEEPEST:
                below = confined.enter(descriptor, entry.name)
                if below is not None:
                    yield from _files(search, below, (*parts, entry.name))
    finally:
        os.close(descriptor)


def _search_file(
    search: Search,
    directory: int,
    parts: tuple[str, ...],
    pattern: Any,
    largest: int,
    hard_links: bool,
    *,
    named: bool,
) -> None:
    try:
        # Among thousands that are passed over, none is waited for.
        looks = {} if named else {"looks": 1}
        data = confined.read_in(directory, parts, largest, hard_links=hard_links, **looks).data
    except toolbelt.ToolError:
        if named:
            raise
        search.skipped += 1
        return
    search.files += 1
    search.bytes += len(data)
    if b"\0" in data[:8_000]:
        search.skipped += 1
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        hit = pattern.search(line)
        if hit is None:
            continue
        # A long line is shown around its match, not from its beginning.
        start = max(0, hit.start() - LONGEST_LINE // 3) if len(line) > LONGEST_LINE else 0
        shown = line[start : start + LONGEST_LINE].decode(errors="replace").rstrip("\r")
        search.matches.append({"path": _named(parts), "line": number, "text": shown})
        if search.is_over():
            return


def _named(parts: tuple[str, ...]) -> str:
    """Write a path that may hold bytes which are no text, as JSON can have it."""
    return paths.shown(parts).encode(errors="replace").decode()
