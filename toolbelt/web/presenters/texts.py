"""What is a text made of that a stranger wrote, or that differs from an older one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of characters. `tone` is "changed" where only these words of a line differ, and "hidden" where they name a
    character that nobody would see ("U+202E", with its name in `title`).
    """

    text: str
    tone: Literal["", "changed", "hidden"] = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line. Of a difference, `sign` is "+", "−", or "⋯" where lines that did not change are left out."""

    pieces: tuple[Piece, ...]
    sign: Literal["", "+", "−", "⋯"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text in two parts: what is shown, and what is folded, with what unfolds it in words ("Show 40 more lines")."""

    shown: tuple[Line, ...]
    folded: tuple[Line, ...] = ()
    more: str = ""
