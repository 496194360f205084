"""Counts with their nouns."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 tool``, ``12 tools``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
