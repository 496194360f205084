"""Features: how well each candidate fits a query, as numbers that a linear ranker weighs.

Every number compares the candidates that the agent may have with each other or with the query. Tools that the agent may
not have are never looked at.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import mul, sub

from toolbelt.core.search import dot_products, queries, tool_index, vectors

NAMES = (
    "lexical",
    "lexical of clause",
    "cosine",
    "name",
    "name of clause",
    "query",
    "clause",
    "toolkit name",
    "parameters",
    "query in first sentence",
    "toolkit",
    "toolkit size",
    "meaning",
    "meaning of clause",
    "meaning behind best",
    "clause meaning behind best",
    "meaning and cosine",
)
# How many candidates come from the whole query, from each clause, and from the query's meaning.
_BY_QUERY, _BY_CLAUSE, _BY_MEANING = 60, 6, 30
# A tool with no word of the query is a candidate only if its meaning is at least this close.
_CLOSE = 0.25
# How many tools of a toolkit speak for it, and the size at which a toolkit is large.
_SPEAKERS, _LARGE = 4, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool that may fit: its place in the index, its features in the order of ``NAMES``, and the matched words."""

    place: int
    features: tuple[float, ...]
    matched: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A query or a clause in numbers: words with their rarity, shares of words and pairs in its vector, its meaning."""

    rarity: Mapping[int, float]
    total: float
    cosines: Mapping[int, float]
    pairs: Mapping[int, float]
    meaning: vectors.Vector


@dataclass(frozen=True, slots=True)
class _Query:
    """A query in numbers: how rare words are, the whole, its clauses, and the clauses in which each word occurs."""

    rarities: tool_index.Rarities
    whole: _Part
    clauses: Sequence[_Part]
    clauses_of: Mapping[int, Sequence[int]]


@dataclass(slots=True)
class _Draft:
    """What is computed of one candidate before candidates are compared. Lists have an item for each clause."""

    place: int
    entry: tool_index.Entry
    matched: tuple[int, ...]
    lexical: float
    lexicals: list[float]
    cosine: float
    meaning: float
    meanings: Sequence[float]


def candidates(index: tool_index.Index, query: queries.Query, among: Sequence[int]) -> list[Candidate]:
    """Return the candidates among the tools at these places, in the order of their places."""
    if not query.words or not among:
        return []
    marks = bytearray(len(index.keys))
    for place in among:
        marks[place] = 1
    allowed = bytes(marks)
    asked = _asked(index, query, index.rarities(allowed))
    by_clause = [_lexical(index, clause.rarity, allowed) for clause in asked.clauses]
    lexical = _sum(by_clause)
    meaning = index.vectors.times(asked.whole.meaning)
    places = _places(among, lexical, by_clause, meaning)
    rows = dot_products.Vectors([index.entries[place].vector for place in places])
    meanings = [map(dot_products.value, rows.times(clause.meaning)) for clause in asked.clauses]
    drafts = [
        _draft(index, place, asked, lexical, by_clause, dot_products.value(meaning[place]), of_clauses)
        for place, of_clauses in zip(places, zip(*meanings, strict=True), strict=True)
    ]
    return _compare(asked, drafts) if drafts else []


def _asked(index: tool_index.Index, query: queries.Query, rarities: tool_index.Rarities) -> _Query:
    unknown: dict[str, int] = {}

    def numbered(stems: Iterable[str]) -> list[int]:
        # Words that no tool contains have numbers below zero.
        return [
            index.numbers[stem] if stem in index.numbers else unknown.setdefault(stem, -1 - len(unknown))
            for stem in stems
        ]

    clauses = [_part(rarities, numbered(clause.stems), clause.typed) for clause in query.clauses]
    stems = [stem for clause in query.clauses for stem in clause.stems]
    typed = [word for clause in query.clauses for word in clause.typed]
    clauses_of: dict[int, list[int]] = {}
    for at, clause in enumerate(clauses):
        for number in clause.rarity:
            clauses_of.setdefault(number, []).append(at)
    return _Query(rarities, _part(rarities, numbered(stems), typed), clauses, clauses_of)


def _part(rarities: tool_index.Rarities, numbers: Sequence[int], typed: Iterable[str]) -> _Part:
    rarity = {number: rarities.words[number] if number >= 0 else rarities.unknown for number in numbers}
    cosines = {
        number: tool_index.dampen(count) * (rarities.grams[number] if number >= 0 else rarities.unknown_gram)
        for number, count in Counter(numbers).items()
    }
    pairs = {
        number: tool_index.dampen(count) * rarities.unknown_gram
        for number, count in Counter(tool_index.pair(*two) for two in pairwise(numbers)).items()
    }
    length = math.hypot(*cosines.values(), *pairs.values()) or 1.0
    return _Part(
        rarity,
        sum(rarity.values()) or 1.0,
        {number: value / length for number, value in cosines.items()},
        {number: value / length for number, value in pairs.items()},
        vectors.of(Counter(typed)),
    )


def _lexical(index: tool_index.Index, rarity: Mapping[int, float], allowed: bytes) -> Mapping[int, float]:
    """Return the BM25 score of each allowed tool that contains any of these words."""
    scores: defaultdict[int, float] = defaultdict(float)
    for number, factor in rarity.items():
        if number >= 0:
            for place, weight in zip(*index.postings[number], strict=True):
                scores[place] += factor * weight
    return {place: score for place, score in scores.items() if allowed[place]}


def _sum(by_clause: Sequence[Mapping[int, float]]) -> Mapping[int, float]:
    if len(by_clause) == 1:
        return by_clause[0]
    total: defaultdict[int, float] = defaultdict(float)
    for scores in by_clause:
        for place, score in scores.items():
            total[place] += score
    return total


def _places(
    among: Sequence[int],
    lexical: Mapping[int, float],
    by_clause: Sequence[Mapping[int, float]],
    meaning: Sequence[int],
) -> list[int]:
    """Return the places that are worth comparing, in order."""
    chosen = set(_best(lexical, _BY_QUERY, 0.1))
    for scores in by_clause if len(by_clause) > 1 else ():
        chosen.update(_best(scores, _BY_CLAUSE, 0.25))
    least = dot_products.product(_CLOSE)
    close = [place for place in among if meaning[place] >= least]
    chosen.update(heapq.nsmallest(_BY_MEANING, close, key=lambda place: (-meaning[place], place)))
    return sorted(chosen)


def _best(scores: Mapping[int, float], most: int, share: float) -> list[int]:
    """Return at most ``most`` of the places, the best ones: those that reach this share of the best score."""
    least = max(scores.values(), default=0.0) * share
    reaching = [place for place, score in scores.items() if score > least]
    if len(reaching) <= most:
        return reaching
    return heapq.nsmallest(most, reaching, key=lambda place: (-scores[place], place))


def _draft(
    index: tool_index.Index,
    place: int,
    asked: _Query,
    lexical: Mapping[int, float],
    by_clause: Sequence[Mapping[int, float]],
    meaning: float,
    meanings: Sequence[float],
) -> _Draft:
    entry, whole = index.entries[place], asked.whole
    grams, pair_rarity = asked.rarities.grams, asked.rarities.unknown_gram
    weights = list(map(mul, entry.counts, map(grams.__getitem__, entry.terms)))
    length = math.sqrt(sum(map(mul, weights, weights)) + pair_rarity**2 * entry.pair_square) or 1.0
    terms = list(
        compress(zip(entry.terms, weights, strict=True), map(whole.cosines.__contains__, entry.terms))
    )
    pairs = compress(
        zip(entry.pairs, entry.pair_counts, strict=True), map(whole.pairs.__contains__, entry.pairs)
    )
    product = sum(weight * whole.cosines[number] for number, weight in terms)
    product += sum(count * pair_rarity * whole.pairs[number] for number, count in pairs)
    return _Draft(
        place,
        entry,
        tuple(number for number, _ in terms),
        lexical.get(place, 0.0),
        [scores.get(place, 0.0) for scores in by_clause],
        product / length,
        meaning,
        meanings,
    )


def _compare(asked: _Query, drafts: Sequence[_Draft]) -> list[Candidate]:
    best = max(draft.lexical for draft in drafts) or 1.0
    bests = [max(column) or 1.0 for column in zip(*(draft.lexicals for draft in drafts), strict=True)]
    closest = max(draft.meaning for draft in drafts)
    closests = [max(column) for column in zip(*(draft.meanings for draft in drafts), strict=True)]
    shares = [
        max(value / most for value, most in zip(draft.lexicals, bests, strict=True)) for draft in drafts
    ]
    of_groups = _of_groups(drafts, best)
    result = []
    for at, draft in enumerate(drafts):
        groups = draft.entry.groups
        features = (
            draft.lexical / best,
            shares[at],
            draft.cosine,
            *_coverage(asked, draft),
            max((of_groups[group] for group in groups), default=0.0),
            max((min(asked.rarities.group_sizes[group], _LARGE) / _LARGE for group in groups), default=0.0),
            draft.meaning,
            max(draft.meanings),
            draft.meaning - closest,
            max(map(sub, draft.meanings, closests)),
            max(draft.meaning, 0.0) * draft.cosine,
        )
        result.append(Candidate(place=draft.place, features=features, matched=draft.matched))
    return result


def _coverage(asked: _Query, draft: _Draft) -> tuple[float, ...]:
    """Return how much of the tool's fields is in the query, and how much of the query is in the tool's fields."""
    entry, rarity, total = draft.entry, asked.rarities.words, asked.whole.total
    matched = {number: rarity[number] for number in draft.matched}
    covered = [0.0] * len(asked.clauses)
    for number, value in matched.items():
        for at in asked.clauses_of[number]:
            covered[at] += value
    in_name = [number for number in entry.name if number in matched]
    named = [0.0] * len(asked.clauses)
    for number in in_name:
        for at in asked.clauses_of[number]:
            named[at] += matched[number]
    of_name = sum(rarity[number] for number in entry.name) or 1.0
    return (
        sum(matched[number] for number in in_name) / of_name,
        max(named) / of_name,
        sum(matched.values()) / total,
        max(value / clause.total for value, clause in zip(covered, asked.clauses, strict=True)),
        sum(matched[number] for number in entry.group_name if number in matched)
        / (sum(rarity[number] for number in entry.group_name) or 1.0),
        sum(matched[number] for number in entry.parameters if number in matched) / total,
        sum(matched[number] for number in entry.first if number in matched) / total,
    )


def _of_groups(drafts: Sequence[_Draft], best: float) -> dict[int, float]:
    """Return what the best candidates of each toolkit say for it."""
    lexical: dict[int, list[float]] = {}
    for draft in drafts:
        for group in draft.entry.groups:
            lexical.setdefault(group, []).append(draft.lexical / best)
    return {group: sum(heapq.nlargest(_SPEAKERS, values)) / _SPEAKERS for group, values in lexical.items()}
