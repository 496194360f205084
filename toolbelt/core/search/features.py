"""Features: how well each candidate fits a query, as numbers that a linear ranker weighs.

Every number compares the candidates that the agent may have with each other or with the query. Tools that the agent may
not have are never looked at.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from operator import mul, sub

from toolbelt.core.search import dot_products, learned, queries, tool_index, vectors

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
    "learned",
)
# Of the sentence model, if there is one.
OF_SENTENCES = (
    "sentence",
    "sentence of clause",
    "sentence behind best",
    "clause sentence behind best",
    "sentence and cosine",
)
BY_CLAUSE = ("lexical of clause", "meaning of clause", "sentence of clause")
# The maximum number of candidates from the whole query, from each clause, and from the query's meaning.
_BY_QUERY, _BY_CLAUSE, _BY_MEANING = 60, 6, 40
# A tool that contains no word of the query is a candidate only if its meaning is at least this close. For a query with
# this many words, the lower limit applies.
_CLOSE, _MANY, _CLOSE_TO_MANY = 0.25, 4, 0.15
# The number of best tools by which a toolkit is scored, and the size at which a toolkit is large.
_SPEAKERS, _LARGE = 4, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool that may fit: its position in the index, its features, and the matched words.

    Features are in the order of ``NAMES``, followed by ``OF_SENTENCES`` if there is a sentence model. ``by_clause`` are
    lists of how well the tool fits each clause, in the order of ``BY_CLAUSE``; without a sentence model, two of them.
    """

    position: int
    features: tuple[float, ...]
    by_clause: tuple[Sequence[float], ...]
    matched: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _TextNumbers:
    """The numbers of a query or a clause: the rarity of its words, the components of its vector, and its meaning."""

    rarity: Mapping[int, float]
    total: float
    cosines: Mapping[int, float]
    pairs: Mapping[int, float]
    meaning: vectors.Vector


@dataclass(frozen=True, slots=True)
class _Query:
    """The numbers of a query: the rarities of words, the whole query, its clauses, and the clauses of each word."""

    rarities: tool_index.Rarities
    whole: _TextNumbers
    clauses: Sequence[_TextNumbers]
    clauses_of: Mapping[int, Sequence[int]]


@dataclass(slots=True)
class _Draft:
    """The values of one candidate before candidates are compared. Lists have an item for each clause."""

    position: int
    entry: tool_index.Entry
    matched: tuple[int, ...]
    lexical: float
    lexicals: list[float]
    cosine: float
    meaning: float
    meanings: Sequence[float]


def candidates(
    index: tool_index.Index,
    query: queries.Query,
    among: Sequence[int],
    words: learned.LearnedWords = learned.NOTHING,
    sentences: Sequence[array[int]] = (),
) -> list[Candidate]:
    """Return the candidates among the tools at these positions, in the order of their positions.

    ``sentences`` are the products of each tool's sentence vector with the query and its clauses.
    """
    if not query.words or not among:
        return []
    marks = bytearray(len(index.keys))
    for position in among:
        marks[position] = 1
    allowed = bytes(marks)
    query_numbers = _query_numbers(index, query, index.rarities(allowed))
    by_clause = [_lexical(index, clause.rarity, allowed) for clause in query_numbers.clauses]
    lexical = _sum(by_clause)
    meaning = index.vectors.times(query_numbers.whole.meaning)
    matches = words.matches(query.words, index.positions, allowed)
    least = dot_products.product(_CLOSE if len(query.words) < _MANY else _CLOSE_TO_MANY)
    selected = matches.keys() | _positions(lexical, by_clause, _nearest(among, meaning, _BY_MEANING, least))
    for at, products in enumerate(sentences):
        selected |= set(_nearest(among, products, _BY_CLAUSE if at else _BY_MEANING, least))
    positions = sorted(selected)
    rows = dot_products.Vectors([index.entries[position].vector for position in positions])
    meanings = [map(dot_products.value, rows.times(clause.meaning)) for clause in query_numbers.clauses]
    drafts = [
        _draft(
            index,
            position,
            query_numbers,
            lexical,
            by_clause,
            dot_products.value(meaning[position]),
            of_clauses,
        )
        for position, of_clauses in zip(positions, zip(*meanings, strict=True), strict=True)
    ]
    if not drafts:
        return []
    compared = _compare(query_numbers, drafts, matches)
    return _with_sentences(compared, drafts, sentences) if sentences else compared


def _query_numbers(index: tool_index.Index, query: queries.Query, rarities: tool_index.Rarities) -> _Query:
    unknown: dict[str, int] = {}

    def numbered(stems: Iterable[str]) -> list[int]:
        # Words that no tool contains have numbers below zero.
        return [
            index.numbers[stem] if stem in index.numbers else unknown.setdefault(stem, -1 - len(unknown))
            for stem in stems
        ]

    meaning, meanings = vectors.of_parts([Counter(clause.typed) for clause in query.clauses])
    clauses = [
        _part(rarities, numbered(clause.stems), of_clause)
        for clause, of_clause in zip(query.clauses, meanings, strict=True)
    ]
    stems = [stem for clause in query.clauses for stem in clause.stems]
    clauses_of: dict[int, list[int]] = {}
    for at, clause in enumerate(clauses):
        for number in clause.rarity:
            clauses_of.setdefault(number, []).append(at)
    return _Query(rarities, _part(rarities, numbered(stems), meaning), clauses, clauses_of)


def _part(rarities: tool_index.Rarities, numbers: Sequence[int], meaning: vectors.Vector) -> _TextNumbers:
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
    return _TextNumbers(
        rarity,
        sum(rarity.values()) or 1.0,
        {number: value / length for number, value in cosines.items()},
        {number: value / length for number, value in pairs.items()},
        meaning,
    )


def _lexical(index: tool_index.Index, rarity: Mapping[int, float], allowed: bytes) -> Mapping[int, float]:
    """Return the BM25 score of each allowed tool that contains any of these words."""
    scores: defaultdict[int, float] = defaultdict(float)
    for number, factor in rarity.items():
        if number >= 0:
            for position, weight in zip(*index.postings[number], strict=True):
                scores[position] += factor * weight
    return {position: score for position, score in scores.items() if allowed[position]}


def _sum(by_clause: Sequence[Mapping[int, float]]) -> Mapping[int, float]:
    if len(by_clause) == 1:
        return by_clause[0]
    total: defaultdict[int, float] = defaultdict(float)
    for scores in by_clause:
        for position, score in scores.items():
            total[position] += score
    return total


def _positions(
    lexical: Mapping[int, float], by_clause: Sequence[Mapping[int, float]], nearest: Sequence[int]
) -> set[int]:
    """Return the positions of the tools to compare."""
    selected = set(_best(lexical, _BY_QUERY, 0.1))
    for scores in by_clause if len(by_clause) > 1 else ():
        selected.update(_best(scores, _BY_CLAUSE, 0.25))
    selected.update(nearest)
    return selected


def _nearest(among: Sequence[int], products: Sequence[int], maximum: int, least: int) -> list[int]:
    """Return at most ``maximum`` of the positions: those with the largest products, if they are at least ``least``."""
    close = [position for position in among if products[position] >= least]
    return heapq.nsmallest(maximum, close, key=lambda position: (-products[position], position))


def _best(scores: Mapping[int, float], maximum: int, share: float) -> list[int]:
    """Return at most ``maximum`` of the positions, the best ones: those that reach this share of the best score."""
    least = max(scores.values(), default=0.0) * share
    reaching = [position for position, score in scores.items() if score > least]
    if len(reaching) <= maximum:
        return reaching
    return heapq.nsmallest(maximum, reaching, key=lambda position: (-scores[position], position))


def _draft(
    index: tool_index.Index,
    position: int,
    query_numbers: _Query,
    lexical: Mapping[int, float],
    by_clause: Sequence[Mapping[int, float]],
    meaning: float,
    meanings: Sequence[float],
) -> _Draft:
    entry, whole = index.entries[position], query_numbers.whole
    grams, pair_rarity = query_numbers.rarities.grams, query_numbers.rarities.unknown_gram
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
        position,
        entry,
        tuple(number for number, _ in terms),
        lexical.get(position, 0.0),
        [scores.get(position, 0.0) for scores in by_clause],
        product / length,
        meaning,
        meanings,
    )


def _compare(
    query_numbers: _Query, drafts: Sequence[_Draft], matches: Mapping[int, float]
) -> list[Candidate]:
    best = max(draft.lexical for draft in drafts) or 1.0
    bests = [max(column) or 1.0 for column in zip(*(draft.lexicals for draft in drafts), strict=True)]
    closest = max(draft.meaning for draft in drafts)
    closests = [max(column) for column in zip(*(draft.meanings for draft in drafts), strict=True)]
    shares = [
        [value / maximum for value, maximum in zip(draft.lexicals, bests, strict=True)] for draft in drafts
    ]
    of_groups = _of_groups(drafts, best)
    result = []
    for at, draft in enumerate(drafts):
        groups = draft.entry.groups
        features = (
            draft.lexical / best,
            max(shares[at]),
            draft.cosine,
            *_coverage(query_numbers, draft),
            max((of_groups[group] for group in groups), default=0.0),
            max(
                (min(query_numbers.rarities.group_sizes[group], _LARGE) / _LARGE for group in groups),
                default=0.0,
            ),
            draft.meaning,
            max(draft.meanings),
            draft.meaning - closest,
            max(map(sub, draft.meanings, closests)),
            max(draft.meaning, 0.0) * draft.cosine,
            matches.get(draft.position, 0.0),
        )
        result.append(
            Candidate(
                position=draft.position,
                features=features,
                by_clause=(shares[at], draft.meanings),
                matched=draft.matched,
            )
        )
    return result


def _with_sentences(
    compared: Sequence[Candidate], drafts: Sequence[_Draft], products: Sequence[array[int]]
) -> list[Candidate]:
    """Return the candidates with the features of sentences."""
    columns = [[dot_products.value(column[draft.position]) for draft in drafts] for column in products]
    closest = [max(column) for column in columns]
    result = []
    for candidate, draft, (whole, *of_clauses) in zip(
        compared, drafts, zip(*columns, strict=True), strict=True
    ):
        clauses, bests = (of_clauses, closest[1:]) if of_clauses else ([whole], closest)
        sentences = (
            whole,
            max(clauses),
            whole - closest[0],
            max(map(sub, clauses, bests)),
            max(whole, 0.0) * draft.cosine,
        )
        result.append(
            replace(
                candidate,
                features=(*candidate.features, *sentences),
                by_clause=(*candidate.by_clause, clauses),
            )
        )
    return result


def _coverage(query_numbers: _Query, draft: _Draft) -> tuple[float, ...]:
    """Return the shares of the tool's fields that are in the query, and of the query that is in the tool's fields."""
    entry, rarity, total = draft.entry, query_numbers.rarities.words, query_numbers.whole.total
    matched = {number: rarity[number] for number in draft.matched}
    covered = [0.0] * len(query_numbers.clauses)
    for number, value in matched.items():
        for at in query_numbers.clauses_of[number]:
            covered[at] += value
    in_name = [number for number in entry.name if number in matched]
    by_clause = [0.0] * len(query_numbers.clauses)
    for number in in_name:
        for at in query_numbers.clauses_of[number]:
            by_clause[at] += matched[number]
    of_name = sum(rarity[number] for number in entry.name) or 1.0
    return (
        sum(matched[number] for number in in_name) / of_name,
        max(by_clause) / of_name,
        sum(matched.values()) / total,
        max(value / clause.total for value, clause in zip(covered, query_numbers.clauses, strict=True)),
        sum(matched[number] for number in entry.group_name if number in matched)
        / (sum(rarity[number] for number in entry.group_name) or 1.0),
        sum(matched[number] for number in entry.parameters if number in matched) / total,
        sum(matched[number] for number in entry.first if number in matched) / total,
    )


def _of_groups(drafts: Sequence[_Draft], best: float) -> dict[int, float]:
    """Return the score of each toolkit, by its best candidates."""
    lexical: dict[int, list[float]] = {}
    for draft in drafts:
        for group in draft.entry.groups:
            lexical.setdefault(group, []).append(draft.lexical / best)
    return {group: sum(heapq.nlargest(_SPEAKERS, values)) / _SPEAKERS for group, values in lexical.items()}
