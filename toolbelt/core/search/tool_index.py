"""The index: for each word and each pair of words, the tools that contain it; for each tool, its vector.

Weights follow BM25 over fields, and TF-IDF over words and pairs of words. How rare a word is, is counted for each set
of tools that is searched: tools that an agent may not have change nothing for it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolbelt.core import catalog
from toolbelt.core.search import documents, sentence_model, vectors, words
from toolbelt.core.search.vectors import Array

# BM25: how soon more of a word stops to count, how far a tool's length counts, and the usual length.
_SATURATION, _LENGTH, _AVERAGE = 1.2, 0.5, 40.0
# The number of sets of tools for which the rarities of words are cached.
_MAX_KEPT = 16
# In which fields a tool has a word. ``OTHER`` are those that are not looked at on their own.
NAME, FIRST, PARAMETERS, GROUP_NAME, OTHER = 1, 2, 4, 8, 16
# Of each field: which of these it is, and how often a word of it counts in BM25, in TF-IDF, and in the tool's vector.
_FIELDS: Mapping[str, tuple[int, float, float, float]] = {
    "name": (NAME, 3.0, 2.0, 2.0),
    "text": (OTHER, 1.0, 1.0, 1.0),
    "first": (FIRST, 0.0, 0.0, 0.0),
    "parameters": (PARAMETERS, 0.5, 0.5, 0.3),
    "parameter_text": (OTHER, 0.3, 0.5, 0.0),
    "group_name": (GROUP_NAME, 1.0, 1.0, 1.0),
    "group_text": (OTHER, 0.3, 0.0, 0.3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Which tools contain which words (or pairs of words): a row for each word of each tool, by word, then by tool.

    ``numbers`` are those of the words, and ``positions`` those of the tools. ``counts`` say how often a tool has a
    word, for TF-IDF.
    """

    numbers: Array
    positions: Array
    counts: Array

    def rows(self, numbers: Array) -> list[slice]:
        """Return the rows of each of these words."""
        starts, ends = (np.searchsorted(self.numbers, numbers, side) for side in ("left", "right"))
        return list(map(slice, starts.tolist(), ends.tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarities:
    """The rarity of each word among some of the tools: in BM25 (``words``) and in TF-IDF (``grams``).

    The last ones are those of a word that no tool contains, and of every pair of words. ``lengths`` are those of the
    tools' words and pairs in TF-IDF; ``names`` and ``group_names`` are the sums of the rarities of the words in these
    fields. ``group_sizes`` say how many of the tools each toolkit has.
    """

    words: Array
    grams: Array
    lengths: Array
    names: Array
    group_names: Array
    group_sizes: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The index of a catalog's tools, in the order of their keys; each by its position.

    ``numbers`` are those of the words. ``weights`` (BM25, without rarity) and ``fields`` have a value for each row of
    ``words``. ``groups`` are the numbers of the toolkits of each tool. ``texts`` are what a sentence model reads of
    each tool, and ``sentences`` has their vectors once there are any.
    """

    keys: Sequence[str]
    positions: Mapping[str, int]
    numbers: Mapping[str, int]
    words: Postings
    weights: Array
    fields: Array
    pairs: Postings
    groups: Sequence[tuple[int, ...]]
    vectors: Array
    texts: Sequence[str]
    sentences: list[Array] = field(default_factory=list)
    rarities_by_allowed: dict[bytes, Rarities] = field(default_factory=dict)

    def rarities(self, allowed: Array) -> Rarities:
        """Return the rarities of words among the tools at the positions where ``allowed`` is true."""
        key = allowed.tobytes()
        rarities = self.rarities_by_allowed.get(key)
        if rarities is None:
            if len(self.rarities_by_allowed) >= _MAX_KEPT:
                self.rarities_by_allowed.clear()
            rarities = self.rarities_by_allowed[key] = self._count(allowed)
        return rarities

    def _count(self, allowed: Array) -> Rarities:
        total, size = int(allowed.sum()), len(self.keys)
        postings = self.words
        frequencies = np.bincount(postings.numbers[allowed[postings.positions]], minlength=len(self.numbers))
        frequencies = np.append(frequencies, 0)
        rarity = np.log(1 + (total - frequencies + 0.5) / (frequencies + 0.5))
        grams = np.log((1 + total) / (1 + np.maximum(frequencies, 1))) + 1
        squares = _sum((postings.counts * grams[postings.numbers]) ** 2, postings.positions, size)
        squares += _sum((self.pairs.counts * grams[-1]) ** 2, self.pairs.positions, size)
        in_name, in_group = ((self.fields & bit) > 0 for bit in (NAME, GROUP_NAME))
        of_words = rarity[postings.numbers]
        return Rarities(
            words=rarity,
            grams=grams,
            lengths=divisors(np.sqrt(squares)),
            names=divisors(_sum(of_words * in_name, postings.positions, size)),
            group_names=divisors(_sum(of_words * in_group, postings.positions, size)),
            group_sizes=Counter(
                group for position in np.flatnonzero(allowed).tolist() for group in self.groups[position]
            ),
        )


def pair(first: Array, second: Array) -> Array:
    """Return the numbers of pairs of words."""
    numbers: Array = first.astype(np.uint64) << np.uint64(32) | second.astype(np.uint64)
    return numbers


def dampen(counts: Array) -> Array:
    """Return counts that grow ever more slowly."""
    return np.where(counts > 1, 1 + np.log(np.maximum(counts, 1)), counts).astype(np.float32)


def vector_words(document: documents.Document) -> dict[str, float]:
    """Return the weighted counts of the words that make a tool's vector."""
    counts: dict[str, float] = {}
    for field_, (*_, weight) in _FIELDS.items():
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
    occurring, fields_of, positions = _occurrences(ordered, numbers)
    bits, weights, grams, _ = np.array(list(_FIELDS.values())).T[:, fields_of]
    word_numbers, word_positions, rows = _group(occurring, positions)
    counts = _sum(weights, rows, len(word_numbers))
    longness = 1 - _LENGTH + _LENGTH * _sum(weights, positions, len(ordered)) / _AVERAGE
    fields = np.zeros(len(word_numbers), np.uint8)
    np.bitwise_or.at(fields, rows, bits.astype(np.uint8))
    follows = (fields_of[:-1] == fields_of[1:]) & (positions[:-1] == positions[1:]) & (grams[:-1] > 0)
    pairs = pair(occurring[:-1][follows], occurring[1:][follows])
    pair_numbers, pair_positions, pair_rows = _group(pairs, positions[:-1][follows])
    groups: dict[str, int] = {}
    # Without the model, the texts would only take memory.
    has_model = sentence_model.is_installed()
    table = vectors.table()
    return Index(
        keys=[document.key for document in ordered],
        positions={document.key: position for position, document in enumerate(ordered)},
        numbers=numbers,
        words=Postings(
            numbers=word_numbers,
            positions=word_positions,
            counts=dampen(_sum(grams, rows, len(word_numbers))),
        ),
        weights=(counts * (_SATURATION + 1) / (counts + _SATURATION * longness[word_positions])).astype(
            np.float32
        ),
        fields=fields,
        pairs=Postings(
            numbers=pair_numbers,
            positions=pair_positions,
            counts=dampen(_sum(grams[:-1][follows], pair_rows, len(pair_numbers))),
        ),
        groups=[
            tuple(groups.setdefault(group, len(groups)) for group in document.groups) for document in ordered
        ],
        vectors=np.array([table.of(vector_words(document)) for document in ordered]),
        texts=[document.sentence for document in ordered] if has_model else (),
    )


def _occurrences(
    ordered: Sequence[documents.Document], numbers: dict[str, int]
) -> tuple[Array, Array, Array]:
    """Return the number, the field and the tool of each word of each text; add new words to ``numbers``."""
    occurring, lengths = array("I"), []
    for document in ordered:
        for name in _FIELDS:
            field_words = getattr(document, name)
            occurring.extend(numbers.setdefault(words.stem(word), len(numbers)) for word in field_words)
            lengths.append(len(field_words))
    fields = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    return np.array(occurring, np.uint32), fields % len(_FIELDS), fields // len(_FIELDS)


def _group(numbers: Array, positions: Array) -> tuple[Array, Array, Array]:
    """Return the different words of each tool (numbers, and positions), and the row of each occurrence among them."""
    known, at = np.unique(numbers, return_inverse=True)
    rows, row_of = np.unique(pair(at, positions), return_inverse=True)
    return known[rows >> np.uint64(32)], (rows & np.uint64(0xFFFFFFFF)).astype(np.uint32), row_of


def _sum(values: Array, at: Array, size: int) -> Array:
    """Return the sum of the values at each place."""
    return np.bincount(at, values, size)


def divisors(sums: Array) -> Array:
    """Return the sums, with 1 instead of 0."""
    return np.where(sums, sums, 1.0)
