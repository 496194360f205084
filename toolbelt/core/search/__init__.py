"""Search of tools, for ``search_tools``.

It needs no model and no network. Tools that share words with the query or mean nearly the same are compared by a few
features, which a linear ranker weighs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from toolbelt.core import catalog, declared_versions
from toolbelt.core.search import (
    current,
    features,
    learned,
    queries,
    ranking,
    sentence_model,
    sentences,
    tool_index,
    words,
)

Query = queries.Query
parse = queries.parse
stem = words.stem
words_of = words.words_of
index = current.of
LearnedWords = learned.LearnedWords
NOTHING_LEARNED = learned.NOTHING
use_learned = learned.use
use_sentences = sentences.use
SentenceMemory = sentences.MemoryStore
prepare_sentences = sentences.prepare
SentenceStatus = sentence_model.Status
sentence_status = sentence_model.status
sentence_error = sentence_model.error
is_sentence_model_incomplete = sentence_model.is_partly_installed
wait = current.wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result: the tool's key, how well it fits alone, and the query's words that it contains."""

    tool: str
    score: float
    matched: tuple[str, ...]


def search(stored: catalog.Catalog, among: Iterable[str], text: str, limit: int) -> tuple[Hit, ...]:
    """Return the best matches of the tools ``among`` (keys), best first, equal scores by key, at most ``limit``.

    Tools that no index has yet follow after the others, by how many of the query's words they contain.
    """
    query = queries.parse(text)
    keys = set(among)
    ready = current.ready(stored)
    if ready is None:
        return _unranked(stored, keys, query)[:limit]
    hits = _ranked(ready, [ready.positions[key] for key in keys & ready.positions.keys()], query, limit)
    return (*hits, *_unranked(stored, keys - ready.positions.keys(), query))[:limit]


def _ranked(
    ready: tool_index.Index, positions: list[int], query: queries.Query, limit: int
) -> tuple[Hit, ...]:
    near = sentences.of_query(ready, query.text, queries.clause_texts(query.text))
    by = ranking.weights_with_sentences() if near else ranking.weights()
    numbers = {ready.numbers.get(stem_): word for stem_, word in query.words.items()}
    candidates = features.candidates(ready, query, positions, learned.current(), near)
    scores = [ranking.score(candidate, by) for candidate in candidates]
    in_order = ranking.order(scores, [candidate.by_clause for candidate in candidates], by.gains)
    return tuple(
        Hit(
            tool=ready.keys[candidates[at].position],
            score=scores[at],
            matched=tuple(word for number, word in numbers.items() if number in candidates[at].matched),
        )
        for at in islice(in_order, limit)
    )


def _unranked(stored: catalog.Catalog, keys: Iterable[str], query: queries.Query) -> tuple[Hit, ...]:
    hits = []
    for key in keys:
        tool = declared_versions.offered(stored.tools[key])
        text = words.fold(f"{key} {tool.title} {tool.description}").casefold()
        matched = tuple(word for word in query.words.values() if word in text)
        if matched:
            hits.append(Hit(tool=key, score=0.0, matched=matched))
    hits.sort(key=lambda hit: (-len(hit.matched), hit.tool))
    return tuple(hits)
