"""The search: the tools that match a query best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

from toolbelt.core import catalog, declared_versions
from toolbelt.core.search import current, features, learned, queries, ranking, sentences, tool_index, words


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
    candidates = features.candidates(ready, query, positions, learned.current(), near)
    if candidates is None:
        return ()
    scores = ranking.scores(candidates.features, by)
    typed = query.words.values()
    return tuple(
        Hit(
            tool=ready.keys[candidates.positions[at]],
            score=float(scores[at]),
            matched=tuple(compress(typed, candidates.matched[:, at])),
        )
        for at in ranking.order(scores, candidates.by_clause, by.gains)[:limit]
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
