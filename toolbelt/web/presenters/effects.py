"""What does a preview of a flip show?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One state that could be wanted ("On"), and what it would do ("+3 tools, +820 tokens"); `notes` go on from there.

    `is_now` says that it is so already.
    """

    word: str
    short: str
    notes: tuple[str, ...] = ()
    is_now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectPage:
    """What could be wanted of a toolkit or tool `key` of the agent."""

    agent: str
    key: str
    lines: tuple[Line, ...]
