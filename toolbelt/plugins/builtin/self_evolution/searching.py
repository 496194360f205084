"""Where in a commit does a text stand? In linear time (RE2), and within limits that the answer admits to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import re2

import toolbelt
from toolbelt.plugins.builtin.self_evolution import git, reading

MOST_FILES = 20_000
MOST_BYTES = 100_000_000
MOST_SECONDS = 15.0
LONGEST_LINE = 300
_BATCH_BYTES = 8_000_000


def compiled(query: str, *, regex: bool) -> Any:
    """Compile what to look for; a plain text is an expression that stands for itself."""
    options = re2.Options()
    options.literal = not regex
    options.log_errors = False
    try:
        return re2.compile(query.encode(), options=options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise toolbelt.ToolError(f"{query!r} is not an expression for RE2: {reason}.") from None
    except UnicodeEncodeError:
        raise toolbelt.ToolError("The query holds half a character, which no file can.") from None


def run(repository: git.Git, at: str, path: str, pattern: Any, most: int) -> dict[str, Any]:
    """Search every text file of the commit below the path; large files and what is no text are passed over."""
    until = time.monotonic() + MOST_SECONDS
    found = reading.entries(repository, at, path, recursive=True)
    files = [one for one in found if one.kind == "file" and one.size <= reading.LARGEST]
    matches: list[dict[str, Any]] = []
    searched, stopped_by, searched_bytes = 0, "", 0
    for batch in _batches(files):
        if time.monotonic() > until:
            stopped_by = f"{MOST_SECONDS:.0f} seconds"
        elif searched >= MOST_FILES or searched_bytes > MOST_BYTES:
            stopped_by = f"{searched} files with {searched_bytes} bytes"
        if stopped_by:
            break
        for entry, data in _contents(repository, batch):
            searched += 1
            searched_bytes += len(data)
            matches += _in_file(entry.path, data, pattern, most - len(matches))
            if len(matches) >= most:
                stopped_by = f"{most} matches"
                break
        if stopped_by:
            break
    answer: dict[str, Any] = {"commit": at, "matches": matches, "files_searched": searched}
    answer["complete"] = not stopped_by
    if stopped_by:
        answer["stopped_by"] = stopped_by
    return answer


def _batches(files: Sequence[reading.Entry]) -> Iterator[list[reading.Entry]]:
    batch: list[reading.Entry] = []
    size = 0
    for one in files:
        if batch and size + one.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


def _contents(repository: git.Git, files: Sequence[reading.Entry]) -> Iterator[tuple[reading.Entry, bytes]]:
    """Read many files at once: git answers each name with a line that gives the size, and then the bytes."""
    asked = "".join(f"{one.name}\n" for one in files).encode()
    answer = repository.objects("cat-file", "--batch", given=asked).output
    place = 0
    for one in files:
        ends = answer.index(b"\n", place) + 1
        if answer[place:ends].endswith(b" missing\n"):
            place = ends
            continue
        yield one, answer[ends : ends + one.size]
        place = ends + one.size + 1


def _in_file(path: str, data: bytes, pattern: Any, most: int) -> Iterator[dict[str, Any]]:
    if b"\0" in data[:8_000]:
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        hit = pattern.search(line)
        if hit is None:
            continue
        if most <= 0:
            return
        most -= 1
        # A long line is shown around its match, not from its beginning.
        start = max(0, hit.start() - LONGEST_LINE // 3) if len(line) > LONGEST_LINE else 0
        shown = line[start : start + LONGEST_LINE].decode(errors="replace").rstrip("\r")
        yield {"path": path, "line": number, "text": shown}
