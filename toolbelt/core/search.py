"""Which of these tools answer this request for help? (semantics: search_tools)

A first version without a model: names are split at their seams, words are stemmed a little, words that say
nothing are cut from the query, and matches are weighed by how rare they are among all tools (BM25).
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
    """One tool that was found: its key, its score, and the query's words that it holds."""

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
    """The words of a query that say something: stem → the word as it was typed."""

    words: Mapping[str, str] = field(default_factory=dict)


def words_of(text: str) -> list[str]:
    """Split a text, or a name at its seams (``snake_case``, ``camelCase``, digits), into lower-case words."""
    return [word.casefold() for word in _WORD.findall(text)]


def stem(word: str) -> str:
    """Cut the commonest English endings, so that ``issues`` finds ``issue`` and ``listing`` finds ``list``."""
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
    """Keep the words of a query that say something; all of them if none does."""
    said = words_of(text)
    telling = [word for word in said if word not in _STOP] or said
    return Query(words={stem(word): word for word in telling})


def index(stored: catalog.Catalog) -> Index:
    """Index every tool of the catalog; worked out once, then kept with it."""
    known = stored.derived.get("search index")
    if known is None:
        known = stored.derived["search index"] = _index(stored)
    return known


def search(stored: catalog.Catalog, among: Iterable[str], text: str, limit: int) -> tuple[Hit, ...]:
    """Rank the tools ``among`` (keys) for the query; best first, equal scores by key, at most ``limit``."""
    found = index(stored)
    total = len(found.words)
    query = parse(text)
    hits = []
    for key in among:
        words = found.words[key]
        matched = [word for word in query.words if word in words]
        if not matched:
            continue
        score = 0.0
        longness = _SATURATION * (1 - _LENGTH + _LENGTH * found.lengths[key] / (found.average or 1))
        for word in matched:
            rarity = math.log(1 + (total - found.frequency[word] + 0.5) / (found.frequency[word] + 0.5))
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
        # The name says more than the text, so it counts three times.
        said = words_of(key) * 3 + words_of(tool.title) * 2 + words_of(tool.description)
        for toolkit in stored.toolkits_of.get(key, ()):
            said += words_of(toolkit.title or toolkit.key)
        counted = Counter(map(stem, said))
        words[key] = counted
        lengths[key] = sum(counted.values())
        frequency.update(counted.keys())
    average = sum(lengths.values()) / len(lengths) if lengths else 1.0
    return Index(words=words, lengths=lengths, frequency=frequency, average=average)
