"""Search the files below a directory, within limits that the result names."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import toolbelt
from toolbelt.plugins import plain_text
from toolbelt.plugins.builtin.files import confined, paths

MAX_FILES = 20_000
MAX_BYTES = 100_000_000
MAX_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class Search:
    """The matches so far, and the limit that stopped the search (empty: none)."""

    max_matches: int
    matches: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    skipped: int = 0
    stopped_by: str = ""
    until: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)

    def is_exhausted(self) -> bool:
        """Return whether a limit was reached, and record which."""
        if not self.stopped_by:
            if len(self.matches) >= self.max_matches:
                self.stopped_by = f"{self.max_matches} matches"
            elif self.files >= MAX_FILES or self.bytes >= MAX_BYTES:
                self.stopped_by = f"{self.files} files with {self.bytes} bytes"
            elif time.monotonic() > self.until:
                self.stopped_by = f"{MAX_SECONDS:.0f} seconds"
        return bool(self.stopped_by)


def run(
    root: confined.Root, parts: tuple[str, ...], pattern: Any, *, glob: str, largest: int, max_matches: int
) -> Search:
    """Search the file, or every text file below the directory. Links, ``.git`` and large files are skipped."""
    search = Search(max_matches=max_matches)
    with root.directory(parts[:-1]) as parent:
        below = confined.enter(parent, parts[-1]) if parts else os.dup(parent)
        if below is None:
            _search_file(search, parent, parts, pattern, largest, root.hard_links, is_named=True)
            return search
    with contextlib.closing(_files(search, below, parts)) as files:
        for directory, file_parts in files:
            names = (file_parts[-1], "/".join(file_parts))
            if glob and not any(fnmatch.fnmatchcase(name, glob) for name in names):
                continue
            _search_file(search, directory, file_parts, pattern, largest, root.hard_links, is_named=False)
    return search


def _files(search: Search, descriptor: int, parts: tuple[str, ...]) -> Generator[tuple[int, tuple[str, ...]]]:
    """Yield the regular files below, each with its open directory; close ``descriptor`` at the end."""
    try:
        directory_entries, complete = confined.entries(descriptor)
        if not complete:
            search.stopped_by = f"a directory of more than {len(directory_entries)} names"
        for entry in directory_entries:
            if search.is_exhausted():
                return
            if entry.kind == "file":
                yield descriptor, (*parts, entry.name)
            elif entry.kind == "directory" and entry.name != ".git" and len(parts) < paths.MAX_DEPTH:
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
    is_named: bool,
) -> None:
    try:
        # When searching thousands of files, do not wait for any of them.
        attempts = {} if is_named else {"attempts": 1}
        data = confined.read_in(directory, parts, largest, hard_links=hard_links, **attempts).data
    except toolbelt.ToolError:
        if is_named:
            raise
        search.skipped += 1
        return
    search.files += 1
    search.bytes += len(data)
    if plain_text.is_binary(data):
        search.skipped += 1
        return
    for number, line in plain_text.matching_lines(data, pattern):
        search.matches.append({"path": paths.readable(parts), "line": number, "text": line})
        if search.is_exhausted():
            return
