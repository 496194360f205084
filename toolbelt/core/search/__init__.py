"""Search of tools, for ``search_tools`` (semantics: search_tools).

It needs no model and no network. Tools that share words with the query or mean nearly the same are compared by a few
features, which a linear ranker weighs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolbelt.core import catalog
from toolbelt.core.search import current, features, queries, ranking, tool_index, words

Query = queries.Query
parse = queries.parse
stem = words.stem
words_of = words.words_of
index = current.own


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result: the tool's key, its score, and the query's words that it contains."""

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
    hits = _ranked(ready, [ready.places[key] for key in keys & ready.places.keys()], query, limit)
    return (*hits, *_unranked(stored, keys - ready.places.keys(), query))[:limit]


def _ranked(ready: tool_index.Index, places: list[int], query: queries.Query, limit: int) -> tuple[Hit, ...]:
    by = ranking.weights()
    numbers = {ready.numbers.get(stem_): word for stem_, word in query.words.items()}
    scored = [
        (-round(ranking.score(candidate, by), 6), candidate.place, candidate)
        for candidate in features.candidates(ready, query, places)
    ]
    scored.sort(key=lambda entry: entry[:2])
    return tuple(
        Hit(
            tool=ready.keys[place],
            score=-score,
            matched=tuple(word for number, word in numbers.items() if number in candidate.matched),
        )
        for score, place, candidate in scored[:limit]
    )


def _unranked(stored: catalog.Catalog, keys: Iterable[str], query: queries.Query) -> tuple[Hit, ...]:
    hits = []
    for key in keys:
        tool = stored.tools[key]
        text = words.fold(f"{key} {tool.title} {tool.description}").casefold()
        matched = tuple(word for word in query.words.values() if word in text)
        if matched:
            hits.append(Hit(tool=key, score=0.0, matched=matched))
    hits.sort(key=lambda hit: (-len(hit.matched), hit.tool))
    return tuple(hits)
