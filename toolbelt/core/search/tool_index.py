"""The index: for each word, the tools that contain it; for each tool, its weighted words, pairs and vector.

Weights follow BM25 over fields, and TF-IDF over words and pairs of words. How rare a word is, is counted over the whole
catalog, whatever an agent may see.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolbelt.core import catalog
from toolbelt.core.search import documents, vectors, words

# The first values of a vector, which differ most between tools: they find candidates, and all values rank those.
COARSE = 32
_SATURATION, _LENGTH = 1.2, 0.5
# How often a word of a field counts: in BM25, in TF-IDF, and in the tool's vector.
_FIELDS: Mapping[str, tuple[float, float, float]] = {
    "name": (3.0, 2.0, 2.0),
    "text": (1.0, 1.0, 1.0),
    "parameters": (0.5, 0.5, 0.3),
    "parameter_text": (0.3, 0.5, 0.0),
    "group_name": (1.0, 1.0, 1.0),
    "group_text": (0.3, 0.0, 0.3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the index knows of one tool. Words and toolkits are numbers.

    ``terms`` are its words, with their ``weights`` (BM25) and ``cosines`` (TF-IDF); ``name``, ``first`` (sentence),
    ``parameters`` and ``group_name`` are the different words of these fields.
    """

    terms: array[int]
    weights: array[float]
    cosines: array[float]
    pairs: array[int]
    pair_cosines: array[float]
    name: array[int]
    first: array[int]
    parameters: array[int]
    group_name: array[int]
    groups: tuple[int, ...]
    vector: array[float]
    coarse: array[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The index of a catalog's tools, in the order of their keys; a tool's place is its position there.

    ``numbers`` are the words' numbers, by which ``rarity`` (BM25), ``gram_rarity`` (TF-IDF) and ``postings`` (places
    and weights) are listed. ``pair_rarity`` has the pairs of words that more than one tool contains.
    """

    keys: Sequence[str]
    places: Mapping[str, int]
    entries: Sequence[Entry]
    numbers: Mapping[str, int]
    rarity: Sequence[float]
    gram_rarity: Sequence[float]
    pair_rarity: Mapping[int, float]
    postings: Sequence[tuple[array[int], array[float]]]
    group_sizes: Sequence[int]

    @property
    def highest_rarity(self) -> float:
        """Return the rarity of a word that no tool contains."""
        return _rarity(0, len(self.keys))

    @property
    def highest_gram_rarity(self) -> float:
        """Return the rarity of a word or pair that at most one tool contains."""
        return _gram_rarity(1, len(self.keys))


@dataclass(frozen=True, slots=True)
class _Counted:
    """How often the words and pairs of a document count."""

    terms: Mapping[int, float]
    grams: Mapping[int, float]
    pairs: Mapping[int, float]


def pair(first: int, second: int) -> int:
    """Return the number of a pair of words."""
    return first << 32 | second


def dampen(count: float) -> float:
    """Return a count that grows ever more slowly."""
    return 1 + math.log(count) if count > 1 else count


def meant(document: documents.Document) -> dict[str, float]:
    """Return how often the words that make a tool's vector count."""
    counts: dict[str, float] = {}
    for field, (_, _, weight) in _FIELDS.items():
        for word in getattr(document, field) if weight else ():
            if word not in words.STOP:
                counts[word] = counts.get(word, 0.0) + weight
    return counts


def of(stored: catalog.Catalog) -> Index:
    """Return the index of every tool of the catalog."""
    return build(
        documents.of(stored, tool) for key, tool in stored.tools.items() if key not in stored.non_tools
    )


def build(texts: Iterable[documents.Document]) -> Index:
    """Return the index of these documents, which have different keys."""
    ordered = sorted(texts, key=lambda document: document.key)
    numbers: dict[str, int] = {}
    counted = [_count(document, numbers) for document in ordered]
    total = len(counted)
    frequency = Counter(term for document in counted for term in document.terms)
    gram_frequency = Counter(term for document in counted for term in document.grams)
    pair_frequency = Counter(words_ for document in counted for words_ in document.pairs)
    rarity = [_rarity(frequency[term], total) for term in range(len(numbers))]
    gram_rarity = [_gram_rarity(gram_frequency[term], total) for term in range(len(numbers))]
    pair_rarity = {
        words_: _gram_rarity(count, total) for words_, count in pair_frequency.items() if count > 1
    }
    del pair_frequency
    lengths = [sum(document.terms.values()) for document in counted]
    average = sum(lengths) / total if total else 1.0
    groups: dict[str, int] = {}
    entries = []
    postings = [(array("I"), array("f")) for _ in rarity]
    for place, document in enumerate(ordered):
        terms, grams, pairs = counted[place].terms, counted[place].grams, counted[place].pairs
        longness = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[place] / average)
        weights = array(
            "f",
            [rarity[term] * count * (_SATURATION + 1) / (count + longness) for term, count in terms.items()],
        )
        for term, weight in zip(terms, weights, strict=True):
            postings[term][0].append(place)
            postings[term][1].append(weight)
        cosines = [dampen(grams.get(term, 0)) * gram_rarity[term] for term in terms]
        rare = _gram_rarity(1, total)
        pair_cosines = [dampen(count) * pair_rarity.get(words_, rare) for words_, count in pairs.items()]
        length = math.hypot(*cosines, *pair_cosines) or 1.0
        vector = array("f", vectors.of(meant(document)))
        entries.append(
            Entry(
                terms=array("I", terms),
                weights=weights,
                cosines=array("f", [value / length for value in cosines]),
                pairs=array("Q", pairs),
                pair_cosines=array("f", [value / length for value in pair_cosines]),
                name=_set(document.name, numbers),
                first=_set(document.first, numbers),
                parameters=_set(document.parameters, numbers),
                group_name=_set(document.group_name, numbers),
                groups=tuple(groups.setdefault(group, len(groups)) for group in document.groups),
                vector=vector,
                coarse=vector[:COARSE],
            )
        )
    sizes = Counter(group for entry in entries for group in entry.groups)
    return Index(
        keys=[document.key for document in ordered],
        places={document.key: place for place, document in enumerate(ordered)},
        entries=entries,
        numbers=numbers,
        rarity=rarity,
        gram_rarity=gram_rarity,
        pair_rarity=pair_rarity,
        postings=postings,
        group_sizes=[sizes[group] for group in range(len(groups))],
    )


def _count(document: documents.Document, numbers: dict[str, int]) -> _Counted:
    terms: defaultdict[int, float] = defaultdict(float)
    grams: defaultdict[int, float] = defaultdict(float)
    pairs: defaultdict[int, float] = defaultdict(float)
    for field, (weight, gram_weight, _) in _FIELDS.items():
        numbered = _numbered(getattr(document, field), numbers)
        for number in numbered:
            terms[number] += weight
            if gram_weight:
                grams[number] += gram_weight
        if gram_weight:
            for first, second in pairwise(numbered):
                pairs[pair(first, second)] += gram_weight
    return _Counted(terms, grams, pairs)


def _numbered(field: Iterable[str], numbers: dict[str, int]) -> list[int]:
    return [numbers.setdefault(words.stem(word), len(numbers)) for word in field]


def _set(field: Iterable[str], numbers: dict[str, int]) -> array[int]:
    return array("I", sorted(set(_numbered(field, numbers))))


def _rarity(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _gram_rarity(count: int, total: int) -> float:
    return math.log((1 + total) / (1 + count)) + 1
