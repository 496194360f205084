"""What did the process of a server write to its error output last? So much, and no more, is kept."""

from __future__ import annotations

import asyncio
import re
from collections import deque

from toolbelt.plugins.upstream import cleaning

MOST_LINES = 40
LONGEST_LINE = 500

# What moves a terminal's cursor and colours its text. Without its first character it would be shown as text.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


class Tail(asyncio.Protocol):
    """Reads a pipe to its end, whatever comes, so that the process never waits for a reader."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._open = b""

    def data_received(self, data: bytes) -> None:
        """Take what was written; of a line without an end, its beginning is kept."""
        *lines, rest = (self._open + data).split(b"\n")
        self._lines.extend(filter(None, map(_shown, lines)))
        self._open = rest[: LONGEST_LINE * 4]

    def text(self) -> str:
        """Give the last lines, as they can be shown."""
        return "\n".join(filter(None, (*self._lines, _shown(self._open))))

    def last(self) -> str:
        """Give the last line that says anything."""
        return next(reversed(self.text().splitlines()), "")


def _shown(line: bytes) -> str:
    return cleaning.text(_TERMINAL.sub("", line.decode(errors="replace")), LONGEST_LINE)
