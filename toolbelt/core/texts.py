"""Texts that every interface words alike: counts with their nouns, lists that end in a count, texts that are cut."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 tool``, ``1,204 tools``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listing(names: Sequence[str], maximum: int = 5) -> str:
    """Return the first names, and the number of the others: ``a, b, c and 4 more``."""
    more = len(names) - maximum
    return ", ".join(names[:maximum]) + (f" and {more} more" if more > 0 else "")


def cut(text: str, maximum: int) -> str:
    """Return a text with at most this many characters, the last of which is an ellipsis if it was longer."""
    return text if len(text) <= maximum else text[: maximum - 1].rstrip() + "…"
