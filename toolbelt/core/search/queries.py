"""Queries: their significant words, as a whole and by clause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolbelt.core.search import words

# A model may paste a page as the query; this much of it is enough.
MAX_CHARACTERS = 8000
MAX_CLAUSES = 24
_CLAUSE = re.compile(
    r"[.?!;:\n]+\s+|[.?!;\n]+|,\s+|\b(?:and|then|also|as well as|plus|but|so)\b|[。？！；，、]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The significant words of a query.

    ``words`` is stem → the word as it was typed. ``clauses`` are its parts: each has the stems and the words in order.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    clauses: Sequence[Clause] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """The significant words of a part of a query: as typed, and stemmed."""

    typed: tuple[str, ...]
    stems: tuple[str, ...]


def parse(text: str) -> Query:
    """Return the significant words of a query; all words if none is significant."""
    text = text[:MAX_CHARACTERS]
    parts: list[list[str]] = []
    for part in _CLAUSE.split(text):
        significant = [word for word in words.words_of(part) if word not in words.STOP]
        # A single word is part of what came before it: "red, green and blue".
        if parts and (len(significant) < 2 or len(parts[-1]) < 2 or len(parts) == MAX_CLAUSES):
            parts[-1].extend(significant)
        elif significant:
            parts.append(significant)
    if not parts and (everything := words.words_of(text)):
        parts.append(everything)
    clauses = tuple(Clause(typed=tuple(part), stems=tuple(map(words.stem, part))) for part in parts)
    typed: dict[str, str] = {}
    for clause in clauses:
        for stem, word in zip(clause.stems, clause.typed, strict=True):
            typed.setdefault(stem, word)
    return Query(words=typed, clauses=clauses)
