"""How many calls may be made within a time, of whom: a condition of gate rules (docs/semantics.md: Counts)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

# Whose calls are counted together: those of an agent, of a session, of a tool, of a session with the same tool and
# arguments, or all that the rule concerns.
Of = Literal["agent", "session", "tool", "identical", "rule"]
OF: tuple[Of, ...] = ("agent", "session", "tool", "identical", "rule")

MAX_CALLS = 1_000_000
MAX_SECONDS = 31 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_UNIT_WORDS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_NAMED = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
# A Monday.
_EPOCH = datetime(1970, 1, 5, tzinfo=UTC)
_WORDS: dict[Of, str] = {
    "agent": "by one agent",
    "session": "in one session",
    "tool": "of one tool",
    "identical": "with the same arguments in one session",
    "rule": "in all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """More than ``calls`` within ``per``, which begins at full hours or days. What cannot be read is the strictest."""

    calls: int
    per: str
    of: Of = "agent"

    def resets(self, at: datetime) -> datetime:
        """Return when the count that is running at this time begins again."""
        seconds = seconds_of(self.per) or MAX_SECONDS
        begun = int((at - _EPOCH).total_seconds()) // seconds * seconds
        return _EPOCH + timedelta(seconds=begun + seconds)

    @property
    def words(self) -> str:
        """Return the limit for people: ``20 calls per hour by one agent``."""
        return f"{self.calls} call{'' if self.calls == 1 else 's'} {self.span} {_WORDS[self.of]}"

    @property
    def span(self) -> str:
        """Return the time for people: ``per hour``, ``within 10 minutes``."""
        if self.per in _NAMED:
            return f"per {self.per}"
        number, unit = self.per[:-1], _UNIT_WORDS.get(self.per[-1:], "")
        return f"within {number} {unit}{'' if number == '1' else 's'}"


def seconds_of(per: str) -> int | None:
    """Return the seconds of a time such as ``hour`` or ``10m``; None if it is none, or too long."""
    if per in _NAMED:
        return _NAMED[per]
    match = re.fullmatch(r"([1-9][0-9]{0,6})([smhd])", per)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    return seconds if 0 < seconds <= MAX_SECONDS else None
