"""The last part of a process's error output, of limited size."""

from __future__ import annotations

import asyncio
import re
from collections import deque

from toolbelt.core.imported import cleaning

MAX_LINES = 40
MAX_LINE_LENGTH = 500

# Terminal sequences that move the cursor or color text. Cleaning removes only their first character.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


class RingBuffer(asyncio.Protocol):
    """Reads everything that comes through a pipe, so that the process never waits for a reader."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._open = b""
        # How many lines there were.
        self.count = 0

    def data_received(self, data: bytes) -> None:
        """Add output; of an unfinished line, the beginning is kept."""
        *lines, unfinished = (self._open + data).split(b"\n")
        shown = [*filter(None, map(_shown, lines))]
        self._lines.extend(shown)
        self.count += len(shown)
        self._open = unfinished[: MAX_LINE_LENGTH * 4]

    def text(self) -> str:
        """Return the last lines, cleaned."""
        return "\n".join(filter(None, (*self._lines, _shown(self._open))))

    def last(self) -> str:
        """Return the last line that is not empty."""
        return next(reversed(self.text().splitlines()), "")


def _shown(line: bytes) -> str:
    return cleaning.text(_TERMINAL.sub("", line.decode(errors="replace")), MAX_LINE_LENGTH)
