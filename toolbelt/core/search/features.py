"""Features: how well each candidate fits a query, as numbers that a linear ranker weighs.

Every number compares the candidates that the agent may have with each other or with the query. Tools that the agent may
not have are never looked at.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolbelt.core.search import learned, queries, tool_index, vectors
from toolbelt.core.search.vectors import Array

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
class Candidates:
    """The tools that may fit, in the order of their positions in the index.

    ``features`` has a row for each; its columns are in the order of ``NAMES``, followed by ``OF_SENTENCES`` if there is
    a sentence model. ``by_clause`` are tables of how well each tool (row) fits each clause (column), in the order of
    ``BY_CLAUSE``; without a sentence model, two of them. ``matched`` says which of the query's words (row) are in which
    tool (column).
    """

    positions: Array
    features: Array
    by_clause: Sequence[Array]
    matched: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The different words of a query.

    ``rows`` are those of the words in the index, and ``clauses`` says which clause (row) has which word (column).
    ``grams`` and ``pairs`` (each with its rows) are what a word or a pair that a tool has adds to the product with the
    query's vector in TF-IDF.
    """

    rows: Sequence[slice]
    rarities: Array
    clauses: Array
    grams: Array
    pairs: Sequence[tuple[slice, float]]


def candidates(
    index: tool_index.Index,
    query: queries.Query,
    among: Sequence[int],
    words: learned.LearnedWords = learned.NOTHING,
    sentences: Sequence[Array] = (),
) -> Candidates | None:
    """Return the candidates among the tools at these positions; None if there are none.

    ``sentences`` are the products of each tool's sentence vector with the query and its clauses.
    """
    if not query.words or not among:
        return None
    allowed = np.zeros(len(index.keys), bool)
    allowed[list(among)] = True
    rarities = index.rarities(allowed)
    of_query = _words(index, query, rarities)
    lexical = _lexical(index, of_query) * allowed
    meaning, clause_meanings = _meanings(query)
    meanings = vectors.products(index.vectors, meaning)
    matches = words.matches(query.words, index.positions, allowed.tobytes())
    selected = _selected(query, allowed, lexical, [meanings, *sentences]) | matches.keys()
    if not selected:
        return None
    positions = np.array(sorted(selected))
    counts, fields, pairs = _occurrences(index, positions, of_query)
    cosine = (of_query.grams @ counts + pairs) / rarities.lengths[positions]
    lexical = lexical[:, positions]
    shares = lexical.sum(0) / (lexical.sum(0).max() or 1.0)
    by_lexical = (lexical / tool_index.divisors(lexical.max(1, keepdims=True))).T
    by_meaning = index.vectors[positions] @ clause_meanings.T
    groups = [index.groups[position] for position in positions.tolist()]
    columns = [
        shares,
        by_lexical.max(1),
        cosine,
        *_coverage(of_query, fields, rarities, positions),
        *_toolkits(groups, shares, rarities),
        *_nearness(meanings[positions], by_meaning, cosine),
        [matches.get(position, 0.0) for position in positions.tolist()],
    ]
    by_clause = [by_lexical, by_meaning]
    if sentences:
        whole, *of_clauses = (products[positions] for products in sentences)
        by_clause.append(np.column_stack(of_clauses or [whole]))
        columns += _nearness(whole, by_clause[-1], cosine)
    return Candidates(
        positions=positions, features=np.column_stack(columns), by_clause=by_clause, matched=fields > 0
    )


def _words(index: tool_index.Index, query: queries.Query, rarities: tool_index.Rarities) -> _Words:
    at = {stem: number for number, stem in enumerate(query.words)}
    numbers = np.array([index.numbers.get(stem, -1) for stem in at])
    clauses = np.zeros((len(query.clauses), len(at)))
    for number, clause in enumerate(query.clauses):
        clauses[number, [at[stem] for stem in clause.stems]] = 1
    in_order = [at[stem] for clause in query.clauses for stem in clause.stems]
    grams = tool_index.dampen(np.bincount(in_order)) * rarities.grams[numbers]
    # Words that no tool has are one word here: the weights were trained so.
    typed = numbers[in_order]
    pairs, pair_counts = np.unique(tool_index.pair(typed[:-1], typed[1:]), return_counts=True)
    pair_grams = tool_index.dampen(pair_counts) * rarities.grams[-1]
    length = np.linalg.norm([*grams, *pair_grams]) or 1.0
    return _Words(
        rows=index.words.rows(numbers),
        rarities=rarities.words[numbers],
        clauses=clauses,
        grams=grams * rarities.grams[numbers] / length,
        pairs=list(zip(index.pairs.rows(pairs), pair_grams * rarities.grams[-1] / length, strict=True)),
    )


def _lexical(index: tool_index.Index, words: _Words) -> Array:
    """Return the BM25 score of each tool (column) for each clause (row)."""
    scores = np.zeros((len(words.clauses), len(index.keys)))
    for rows, rarity, clauses in zip(words.rows, words.rarities, words.clauses.T, strict=True):
        weighed = rarity * index.weights[rows]
        for clause in np.flatnonzero(clauses):
            scores[clause, index.words.positions[rows]] += weighed
    return scores


def _meanings(query: queries.Query) -> tuple[Array, Array]:
    """Return the vectors of the query and of its clauses."""
    counts = [Counter(clause.typed) for clause in query.clauses]
    table = vectors.table()
    return table.of(sum(counts, Counter())), np.array([table.of(clause) for clause in counts])


def _selected(query: queries.Query, allowed: Array, lexical: Array, products: Sequence[Array]) -> set[int]:
    """Return the positions of the tools to compare."""
    total = lexical.sum(0)
    selected = _best(total, total.max() * 0.1, _BY_QUERY)
    if len(lexical) > 1:
        for scores in lexical:
            selected |= _best(scores, scores.max() * 0.25, _BY_CLAUSE)
    least = _CLOSE if len(query.words) < _MANY else _CLOSE_TO_MANY
    for number, of_vectors in enumerate(products):
        # Those of the word vectors, of the sentence vectors, and of the latter with each clause.
        maximum = _BY_MEANING if number < 2 else _BY_CLAUSE
        selected |= _best(np.where(allowed, of_vectors, -1.0), least, maximum)
    return selected


def _best(values: Array, least: float, maximum: int) -> set[int]:
    """Return at most ``maximum`` positions: those with the largest values, if they are more than ``least``."""
    close = np.flatnonzero(values > least)
    in_order = close[np.argsort(-values[close], kind="stable")]
    return set(in_order[:maximum].tolist())


def _occurrences(index: tool_index.Index, positions: Array, words: _Words) -> tuple[Array, Array, Array]:
    """Return how often a tool (column) has a word (row), in which fields, and what its pairs of words add."""
    columns = np.full(len(index.keys), -1)
    columns[positions] = np.arange(len(positions))
    counts = np.zeros((len(words.rows), len(positions)))
    fields = np.zeros(counts.shape, np.uint8)
    for word, rows in enumerate(words.rows):
        at = columns[index.words.positions[rows]]
        counts[word, at[at >= 0]] = index.words.counts[rows][at >= 0]
        fields[word, at[at >= 0]] = index.fields[rows][at >= 0]
    pairs = np.zeros(len(positions))
    for rows, weight in words.pairs:
        at = columns[index.pairs.positions[rows]]
        pairs[at[at >= 0]] += weight * index.pairs.counts[rows][at >= 0]
    return counts, fields, pairs


def _coverage(
    words: _Words, fields: Array, rarities: tool_index.Rarities, positions: Array
) -> Iterator[Array]:
    """Yield the shares of the tools' fields that are in the query, and of the query that is in the tools' fields."""
    total = words.rarities.sum() or 1.0
    matched = words.rarities[:, None] * (fields > 0)
    name, first, parameters, group_name = (
        matched * ((fields & bit) > 0)
        for bit in (tool_index.NAME, tool_index.FIRST, tool_index.PARAMETERS, tool_index.GROUP_NAME)
    )
    yield name.sum(0) / rarities.names[positions]
    yield (words.clauses @ name).max(0) / rarities.names[positions]
    yield matched.sum(0) / total
    yield (words.clauses @ matched / tool_index.divisors(words.clauses @ words.rarities)[:, None]).max(0)
    yield group_name.sum(0) / rarities.group_names[positions]
    yield parameters.sum(0) / total
    yield first.sum(0) / total


def _toolkits(
    groups: Sequence[tuple[int, ...]], shares: Array, rarities: tool_index.Rarities
) -> Iterator[list[float]]:
    """Yield the score of each tool's best toolkit, by the best candidates of each, and the size of its largest."""
    of_groups: defaultdict[int, list[float]] = defaultdict(list)
    for of_tool, share in zip(groups, shares.tolist(), strict=True):
        for group in of_tool:
            of_groups[group].append(share)
    scores = {
        group: sum(heapq.nlargest(_SPEAKERS, values)) / _SPEAKERS for group, values in of_groups.items()
    }
    sizes = {group: min(rarities.group_sizes[group], _LARGE) / _LARGE for group in scores}
    for values in (scores, sizes):
        yield [max((values[group] for group in of_tool), default=0.0) for of_tool in groups]


def _nearness(whole: Array, by_clause: Array, cosine: Array) -> list[Array]:
    """Return the features of the products of each tool's vector with those of the query and its clauses."""
    return [
        whole,
        by_clause.max(1),
        whole - whole.max(),
        (by_clause - by_clause.max(0)).max(1),
        np.maximum(whole, 0.0) * cosine,
    ]
