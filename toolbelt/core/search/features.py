"""Features: how well each candidate fits a query, as numbers that a linear ranker weighs.

Every number compares the candidates that the agent may have with each other or with the query. Tools that the agent may
not have are never looked at.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import add, mul, sub

from toolbelt.core.search import queries, tool_index, vectors

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
    """A query in numbers: the whole, its clauses, and the clauses in which each word occurs."""

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
    meanings: list[float]


def candidates(index: tool_index.Index, query: queries.Query, among: Sequence[int]) -> list[Candidate]:
    """Return the candidates among the tools at these places, in the order of their places."""
    if not query.words or not among:
        return []
    asked = _asked(index, query)
    by_clause = [_lexical(index, clause.rarity) for clause in asked.clauses]
    lexical = by_clause[0]
    for scores in by_clause[1:]:
        lexical = list(map(add, lexical, scores))
    places = _places(index, asked.whole, among, lexical, by_clause)
    drafts = [_draft(index, place, asked, lexical, by_clause) for place in places]
    return _compare(index, asked, drafts) if drafts else []


def _asked(index: tool_index.Index, query: queries.Query) -> _Query:
    unknown: dict[str, int] = {}

    def numbered(stems: Iterable[str]) -> list[int]:
        # Words that no tool contains have numbers below zero.
        return [
            index.numbers[stem] if stem in index.numbers else unknown.setdefault(stem, -1 - len(unknown))
            for stem in stems
        ]

    clauses = [_part(index, numbered(clause.stems), clause.typed) for clause in query.clauses]
    stems = [stem for clause in query.clauses for stem in clause.stems]
    typed = [word for clause in query.clauses for word in clause.typed]
    clauses_of: dict[int, list[int]] = {}
    for at, clause in enumerate(clauses):
        for number in clause.rarity:
            clauses_of.setdefault(number, []).append(at)
    return _Query(_part(index, numbered(stems), typed), clauses, clauses_of)


def _part(index: tool_index.Index, numbers: Sequence[int], typed: Iterable[str]) -> _Part:
    highest, highest_gram = index.highest_rarity, index.highest_gram_rarity
    rarity = {number: index.rarity[number] if number >= 0 else highest for number in numbers}
    cosines = {
        number: tool_index.dampen(count) * (index.gram_rarity[number] if number >= 0 else highest_gram)
        for number, count in Counter(numbers).items()
    }
    pairs = {
        number: tool_index.dampen(count) * index.pair_rarity.get(number, highest_gram)
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


def _lexical(index: tool_index.Index, numbers: Iterable[int]) -> list[float]:
    """Return the BM25 score of every tool."""
    scores = [0.0] * len(index.keys)
    for number in numbers:
        if number >= 0:
            for place, weight in zip(*index.postings[number], strict=True):
                scores[place] += weight
    return scores


def _places(
    index: tool_index.Index,
    whole: _Part,
    among: Sequence[int],
    lexical: Sequence[float],
    by_clause: Sequence[Sequence[float]],
) -> list[int]:
    """Return the places that are worth comparing, in order."""
    chosen = set(_best(among, lexical, _BY_QUERY, 0.1))
    for scores in by_clause if len(by_clause) > 1 else ():
        chosen.update(_best(among, scores, _BY_CLAUSE, 0.25))
    if any(whole.meaning):
        meaning, entries = whole.meaning[: tool_index.COARSE], index.entries
        close = [sum(map(mul, meaning, entries[place].coarse)) for place in among]
        nearest = heapq.nlargest(_BY_MEANING, range(len(close)), key=close.__getitem__)
        chosen.update(among[at] for at in nearest if _dot(whole.meaning, entries[among[at]].vector) >= _CLOSE)
    return sorted(chosen)


def _best(among: Sequence[int], scores: Sequence[float], most: int, share: float) -> list[int]:
    """Return at most ``most`` of the places, the best ones: those that reach this share of the best score."""
    least = max(map(scores.__getitem__, among)) * share
    reaching = [place for place in among if scores[place] > least]
    return heapq.nlargest(most, reaching, key=scores.__getitem__) if len(reaching) > most else reaching


def _draft(
    index: tool_index.Index,
    place: int,
    asked: _Query,
    lexical: Sequence[float],
    by_clause: Sequence[Sequence[float]],
) -> _Draft:
    entry, whole = index.entries[place], asked.whole
    cosine = 0.0
    matched = []
    for number, share in zip(entry.terms, entry.cosines, strict=True):
        if number in whole.cosines:
            matched.append(number)
            cosine += share * whole.cosines[number]
    for number, share in zip(entry.pairs, entry.pair_cosines, strict=True):
        if number in whole.pairs:
            cosine += share * whole.pairs[number]
    return _Draft(
        place,
        entry,
        tuple(matched),
        lexical[place],
        [scores[place] for scores in by_clause],
        cosine,
        _dot(whole.meaning, entry.vector),
        [_dot(clause.meaning, entry.vector) for clause in asked.clauses],
    )


def _compare(index: tool_index.Index, asked: _Query, drafts: Sequence[_Draft]) -> list[Candidate]:
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
            *_coverage(index, asked, draft),
            max((of_groups[group] for group in groups), default=0.0),
            max((min(index.group_sizes[group], _LARGE) / _LARGE for group in groups), default=0.0),
            draft.meaning,
            max(draft.meanings),
            draft.meaning - closest,
            max(map(sub, draft.meanings, closests)),
            max(draft.meaning, 0.0) * draft.cosine,
        )
        result.append(Candidate(place=draft.place, features=features, matched=draft.matched))
    return result


def _coverage(index: tool_index.Index, asked: _Query, draft: _Draft) -> tuple[float, ...]:
    """Return how much of the tool's fields is in the query, and how much of the query is in the tool's fields."""
    entry, rarity, total = draft.entry, index.rarity, asked.whole.total
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


def _dot(first: vectors.Vector, second: array[float]) -> float:
    product: float = sum(map(mul, first, second))
    return product
