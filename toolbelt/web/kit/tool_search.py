"""The tools that match a text, the best first: the same on every page that searches or filters tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolbelt.core import catalog
from toolbelt.core.search import engine
from toolbelt.web.kit import words

# The most tools that are found by their meaning, besides those that contain the text.
MAX_HITS = 30
# Hits must score at least this share of the best one: the others only share a word with the text.
MIN_SHARE = 0.5


def find(stored: catalog.Catalog, text: str, among: Iterable[str] | None = None) -> list[str]:
    """Return the keys of the matching tools ``among`` these (None: all that are not retired), the best first.

    A tool matches if it contains the text, or if it is among the best hits of an agent's search. The tool with this key
    comes first. A part of a key, such as ``github__``, finds only the tools that contain it.
    """
    keys = [tool.key for tool in stored.tools.values() if not tool.retired] if among is None else list(among)
    if not text.strip():
        return keys
    matches = containing(stored, text, keys)
    hits = engine.search(stored, keys, text, len(keys))
    if not _is_part_of_key(text, matches):
        matches += [hit.tool for hit in _good(hits[:MAX_HITS])]
    matching = frozenset(matches)
    exact = [text.strip()] if text.strip() in matching else []
    ranked = [hit.tool for hit in hits if hit.tool in matching]
    return list(dict.fromkeys([*exact, *ranked, *matches]))


def containing(stored: catalog.Catalog, text: str, among: Iterable[str]) -> list[str]:
    """Return the keys of the tools ``among`` these whose key, title or description contains the text, in order."""
    return [
        key for key in among if words.contains(text, key, (tool := stored.tools[key]).title, tool.description)
    ]


def _good(hits: Sequence[engine.Hit]) -> Iterator[engine.Hit]:
    """Yield the hits that score nearly as well as the best one; without an index yet, those with as many words."""
    for hit in hits:
        best = hits[0]
        if hit.score >= MIN_SHARE * best.score > 0 or (
            not best.score and len(hit.matched) == len(best.matched)
        ):
            yield hit


def _is_part_of_key(text: str, keys: Iterable[str]) -> bool:
    """Return whether a text is the beginning or another part of a key, which no word of a sentence is."""
    part = text.strip()
    return "_" in part and any(words.contains(part, key) for key in keys)
