"""Search of tools, for ``search_tools`` and the dashboard (semantics: search_tools).

It needs no model and no network. Tools that share words with the query or mean nearly the same are compared by a few
features, which a linear ranker weighs. An index is computed once for a catalog.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolbelt.core import catalog
from toolbelt.core.search import features, queries, ranking, tool_index, words

Query = queries.Query
parse = queries.parse
stem = words.stem
words_of = words.words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result: the tool's key, its score, and the query's words that it contains."""

    tool: str
    score: float
    matched: tuple[str, ...]


def index(stored: catalog.Catalog) -> tool_index.Index:
    """Return the index of every tool of the catalog; computed once and cached with the catalog."""
    cached: tool_index.Index | None = stored.derived.get("search index")
    if cached is None:
        cached = stored.derived["search index"] = tool_index.of(stored)
    return cached


def search(stored: catalog.Catalog, among: Iterable[str], text: str, limit: int) -> tuple[Hit, ...]:
    """Return the best matches of the tools ``among`` (keys), best first, equal scores by key, at most ``limit``."""
    of = index(stored)
    query = queries.parse(text)
    places = sorted({of.places[key] for key in among})
    by = ranking.weights()
    numbers = {of.numbers.get(stem_): word for stem_, word in query.words.items()}
    scored = [
        (-round(ranking.score(candidate, by), 6), candidate.place, candidate)
        for candidate in features.candidates(of, query, places)
    ]
    scored.sort(key=lambda one: one[:2])
    return tuple(
        Hit(
            tool=of.keys[place],
            score=-score,
            matched=tuple(word for number, word in numbers.items() if number in candidate.matched),
        )
        for score, place, candidate in scored[:limit]
    )
