"""Full-text search of tools, for ``search_tools`` (semantics: search_tools).

It uses no model: names are split into words, words are stemmed lightly, stop words are removed from the query, and
matches are weighted by how rare they are among all tools (BM25).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolbelt.core import catalog

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_STOP_WORDS = (
    "a an and any are as at be by can could do for from get give have help how i if in into is it its let like make me "
    "my need of on one or our please should so some that the their them there these this those to tool tools use want "
    "we what when where which who will with would you your"
)
_STOP = frozenset(_STOP_WORDS.split())
_SATURATION, _LENGTH = 1.2, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result: the tool's key, its score, and the query's words that it contains."""

    tool: str
    score: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Word counts of every tool of a catalog."""

    words: Mapping[str, Mapping[str, int]]
    lengths: Mapping[str, int]
    frequency: Mapping[str, int]
    average: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The significant words of a query: stem → the word as it was typed."""

    words: Mapping[str, str] = field(default_factory=dict)


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text or a name (``snake_case``, ``camelCase``, digits)."""
    return [word.casefold() for word in _WORD.findall(text)]


def stem(word: str) -> str:
    """Return the word without the commonest English endings, so that ``listing`` finds ``list``."""
    for ending, least, put in (
        ("ies", 5, "y"),
        ("sses", 6, "ss"),
        ("ing", 6, ""),
        ("ed", 5, ""),
        ("es", 5, ""),
    ):
        if word.endswith(ending) and len(word) >= least:
            word = word[: -len(ending)] + put
            break
    else:
        if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
            word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def parse(text: str) -> Query:
    """Return the significant words of a query; all words if none is significant."""
    words = words_of(text)
    significant = [word for word in words if word not in _STOP] or words
    return Query(words={stem(word): word for word in significant})


def index(stored: catalog.Catalog) -> Index:
    """Return the index of every tool of the catalog; computed once and cached with the catalog."""
    cached = stored.derived.get("search index")
    if cached is None:
        cached = stored.derived["search index"] = _index(stored)
    return cached


def search(stored: catalog.Catalog, among: Iterable[str], text: str, limit: int) -> tuple[Hit, ...]:
    """Return the best matches of the tools ``among`` (keys), best first, equal scores by key, at most ``limit``."""
    word_index = index(stored)
    total = len(word_index.words)
    query = parse(text)
    hits = []
    for key in among:
        words = word_index.words[key]
        matched = [word for word in query.words if word in words]
        if not matched:
            continue
        score = 0.0
        longness = _SATURATION * (1 - _LENGTH + _LENGTH * word_index.lengths[key] / (word_index.average or 1))
        for word in matched:
            rarity = math.log(
                1 + (total - word_index.frequency[word] + 0.5) / (word_index.frequency[word] + 0.5)
            )
            score += rarity * words[word] * (_SATURATION + 1) / (words[word] + longness)
        hits.append(
            Hit(tool=key, score=round(score, 4), matched=tuple(query.words[word] for word in matched))
        )
    hits.sort(key=lambda hit: (-hit.score, hit.tool))
    return tuple(hits[:limit])


def _index(stored: catalog.Catalog) -> Index:
    words: dict[str, Mapping[str, int]] = {}
    lengths: dict[str, int] = {}
    frequency: Counter[str] = Counter()
    for key, tool in stored.tools.items():
        if key in stored.non_tools:
            continue
        # The name is more significant than the text, so it counts three times.
        tool_words = words_of(key) * 3 + words_of(tool.title) * 2 + words_of(tool.description)
        for toolkit in stored.toolkits_of.get(key, ()):
            tool_words += words_of(toolkit.title or toolkit.key)
        counted = Counter(map(stem, tool_words))
        words[key] = counted
        lengths[key] = sum(counted.values())
        frequency.update(counted.keys())
    average = sum(lengths.values()) / len(lengths) if lengths else 1.0
    return Index(words=words, lengths=lengths, frequency=frequency, average=average)
