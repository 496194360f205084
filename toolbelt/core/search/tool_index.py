"""The index: for each word, the tools that contain it; for each tool, its words, pairs of words and vector.

Weights follow BM25 over fields, and TF-IDF over words and pairs of words. How rare a word is, is counted for each set
of tools that is searched: tools that an agent may not have change nothing for it.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from toolbelt.core import catalog
from toolbelt.core.search import documents, dot_products, sentence_model, vectors, words

# BM25: how soon more of a word stops to count, how far a tool's length counts, and the usual length.
_SATURATION, _LENGTH, _AVERAGE = 1.2, 0.5, 40.0
# The number of sets of tools for which the rarities of words are cached.
_MAX_KEPT = 16
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
    """A tool in the index. Words and toolkits are numbers.

    ``terms`` are its words and ``pairs`` its pairs of words, with their counts; ``pair_square`` is the sum of the
    squares of the latter. ``name``, ``first`` (sentence), ``parameters`` and ``group_name`` are the different words of
    these fields.
    """

    terms: array[int]
    counts: array[float]
    pairs: array[int]
    pair_counts: array[float]
    pair_square: float
    name: array[int]
    first: array[int]
    parameters: array[int]
    group_name: array[int]
    groups: tuple[int, ...]
    vector: array[int]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarities:
    """The rarity of each word among some of the tools: in BM25 and in TF-IDF. A pair counts as if one tool had it.

    ``unknown`` and ``unknown_gram`` are those of a word that none of these tools contains; ``group_sizes`` say how many
    of them each toolkit has.
    """

    words: Sequence[float]
    grams: Sequence[float]
    unknown: float
    unknown_gram: float
    group_sizes: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The index of a catalog's tools, in the order of their keys; each by its position.

    ``numbers`` are the words' numbers, by which ``postings`` (positions, and BM25 weights without rarity) are listed.
    ``vectors`` are those of the entries; ``sentences`` has their sentence vectors once there are any.
    """

    keys: Sequence[str]
    positions: Mapping[str, int]
    entries: Sequence[Entry]
    vectors: dot_products.Vectors
    numbers: Mapping[str, int]
    postings: Sequence[tuple[array[int], array[float]]]
    sentences: list[dot_products.Vectors] = field(default_factory=list)
    rarities_by_allowed: dict[bytes, Rarities] = field(default_factory=dict)

    def rarities(self, allowed: bytes) -> Rarities:
        """Return the rarities of words among the tools at the positions where ``allowed`` is 1."""
        rarities = self.rarities_by_allowed.get(allowed)
        if rarities is None:
            if len(self.rarities_by_allowed) >= _MAX_KEPT:
                self.rarities_by_allowed.clear()
            rarities = self.rarities_by_allowed[allowed] = self._count(allowed)
        return rarities

    def _count(self, allowed: bytes) -> Rarities:
        total = sum(allowed)
        frequencies = [sum(map(allowed.__getitem__, positions)) for positions, _ in self.postings]
        sizes = Counter(
            group
            for position, entry in enumerate(self.entries)
            if allowed[position]
            for group in entry.groups
        )
        return Rarities(
            words=array("d", [_rarity(count, total) for count in frequencies]),
            grams=array("d", [_gram_rarity(max(count, 1), total) for count in frequencies]),
            unknown=_rarity(0, total),
            unknown_gram=_gram_rarity(1, total),
            group_sizes=sizes,
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    """The weighted counts of a document's words and pairs."""

    terms: Mapping[int, float]
    grams: Mapping[int, float]
    pairs: Mapping[int, float]


def pair(first: int, second: int) -> int:
    """Return the number of a pair of words."""
    return first << 32 | second


def dampen(count: float) -> float:
    """Return a count that grows ever more slowly."""
    return 1 + math.log(count) if count > 1 else count


def vector_words(document: documents.Document) -> dict[str, float]:
    """Return the weighted counts of the words that make a tool's vector."""
    counts: dict[str, float] = {}
    for field_, (_, _, weight) in _FIELDS.items():
        for word in getattr(document, field_) if weight else ():
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
    groups: dict[str, int] = {}
    # Without the model, the texts would only take memory.
    has_model = sentence_model.is_installed()
    entries = []
    postings = [(array("I"), array("f")) for _ in numbers]
    for position, document in enumerate(ordered):
        terms, grams, pairs = counted[position].terms, counted[position].grams, counted[position].pairs
        longness = _SATURATION * (1 - _LENGTH + _LENGTH * sum(terms.values()) / _AVERAGE)
        for term, count in terms.items():
            postings[term][0].append(position)
            postings[term][1].append(count * (_SATURATION + 1) / (count + longness))
        pair_counts = array("f", map(dampen, pairs.values()))
        entries.append(
            Entry(
                terms=array("I", terms),
                counts=array("f", [dampen(grams.get(term, 0)) for term in terms]),
                pairs=array("Q", pairs),
                pair_counts=pair_counts,
                pair_square=sum(count * count for count in pair_counts),
                name=_set(document.name, numbers),
                first=_set(document.first, numbers),
                parameters=_set(document.parameters, numbers),
                group_name=_set(document.group_name, numbers),
                groups=tuple(groups.setdefault(group, len(groups)) for group in document.groups),
                vector=dot_products.row(vectors.of(vector_words(document))),
                sentence=document.sentence if has_model else "",
            )
        )
    return Index(
        keys=[document.key for document in ordered],
        positions={document.key: position for position, document in enumerate(ordered)},
        entries=entries,
        vectors=dot_products.Vectors([entry.vector for entry in entries]),
        numbers=numbers,
        postings=postings,
    )


def _count(document: documents.Document, numbers: dict[str, int]) -> _Counted:
    terms: defaultdict[int, float] = defaultdict(float)
    grams: defaultdict[int, float] = defaultdict(float)
    pairs: defaultdict[int, float] = defaultdict(float)
    for field_, (weight, gram_weight, _) in _FIELDS.items():
        numbered = _numbered(getattr(document, field_), numbers)
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
