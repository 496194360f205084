"""Reading, searching and editing of plain text, for plugins with file tools. Errors are ToolErrors for the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

from toolbelt.plugins import contract

MAX_ANSWER_LENGTH = 100_000
MAX_LINE_LENGTH = 300
_MAX_SEARCH_MEMORY = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A range of lines, from ``first`` to ``last`` of ``count``. ``is_truncated``: even the first line was too long."""

    text: str
    first: int
    last: int
    count: int
    is_truncated: bool


def decode(data: bytes, path: str) -> str:
    """Return the text, or raise ToolError if it is not UTF-8."""
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    raise contract.ToolError(
        f"{path} is not UTF-8 text, so it can be neither shown nor changed. It has {len(data)} bytes."
    )


def is_binary(data: bytes) -> bool:
    """Return whether the file is binary. Like git, check for a NUL byte."""
    return b"\0" in data[:8_000]


def lines(text: str, first: int, max_lines: int) -> Lines:
    """Return at most ``max_lines`` whole lines, beginning at ``first``, as many as fit into a result.

    Only a line feed ends a line, as in editors; a carriage return is part of its line.
    """
    all_lines = text.split("\n")
    if all_lines[-1] == "":
        all_lines.pop()
    if first > max(len(all_lines), 1):
        raise contract.ToolError(f"There is no line {first}. The file has {len(all_lines)} lines.")
    fitting: list[str] = []
    room = MAX_ANSWER_LENGTH
    for line in all_lines[first - 1 : first - 1 + max_lines]:
        if len(line) + 1 > room:
            break
        fitting.append(line)
        room -= len(line) + 1
    if not fitting and all_lines:
        # The line is longer than a result may be: return its beginning.
        beginning = all_lines[first - 1][:MAX_ANSWER_LENGTH]
        return Lines(text=beginning, first=first, last=first, count=len(all_lines), is_truncated=True)
    last = first + len(fitting) - 1
    ending = "\n" if fitting and (last < len(all_lines) or text.endswith("\n")) else ""
    return Lines(
        text="\n".join(fitting) + ending, first=first, last=last, count=len(all_lines), is_truncated=False
    )


def replace(text: str, old: str, new: str, count: int, path: str) -> str:
    """Return the text with ``old`` replaced, which must occur exactly ``count`` times."""
    if old == new:
        raise contract.ToolError(f"The old and the new text are the same, so nothing would change in {path}.")
    occurrences = text.count(old)
    if occurrences == count:
        return text.replace(old, new)
    if occurrences == 0:
        hint = " Its lines end in CR LF." if "\r\n" in text and "\r" not in old else ""
        raise contract.ToolError(
            f"{path} does not contain the old text exactly. Read the file again and copy the text from it.{hint}"
        )
    raise contract.ToolError(
        f"{path} contains the old text {occurrences} times, not {count}. Include more of the surrounding text, or"
        f" set count to {occurrences}."
    )


def search_pattern(query: str, *, regex: bool, ignore_case: bool = False) -> Any:
    """Return the query as an RE2 pattern, which searches in linear time. Raise ToolError if it is invalid."""
    options = re2.Options()
    options.literal = not regex
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = _MAX_SEARCH_MEMORY
    try:
        return re2.compile(query.encode(), options=options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise contract.ToolError(f"{query!r} is not a valid RE2 expression: {reason}.") from None


def matching_lines(data: bytes, pattern: Any) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each matching line. Long lines are cut around the match."""
    for number, line in enumerate(data.split(b"\n"), 1):
        match = pattern.search(line)
        if match is not None:
            start = max(0, match.start() - MAX_LINE_LENGTH // 3) if len(line) > MAX_LINE_LENGTH else 0
            yield number, line[start : start + MAX_LINE_LENGTH].decode(errors="replace").rstrip("\r")
