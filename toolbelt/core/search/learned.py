"""Learned words: words of earlier requests that a tool served (see toolbelt.runtime.records.learning).

They influence the order of tools that an agent may have anyway, and are never shown. How rare a word is, is counted
among these tools only, as everywhere in the search.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

_Value = TypeVar("_Value")
# How often a word counts at most for one agent, so that no agent decides alone.
MAX_COUNT = 3.0
# How many tools are candidates only because of their learned words.
_MAX_CANDIDATES = 20
# Added to the length of a tool's words, so that a tool with few of them is not the best for each of these.
_SHRINKAGE = 1.0


class LearnedWords:
    """The learned words of tools."""

    def __init__(self, counts: Iterable[tuple[str, Mapping[str, float]]] = ()) -> None:
        """Weigh the words: of each tool (by key) and each agent, stems with their counts."""
        self._of_tools = _weigh(counts)
        self._lengths = {tool: _length(weights) for tool, weights in self._of_tools.items()}
        self._weights: dict[str, dict[str, float]] = {}
        for tool, weights in self._of_tools.items():
            for stem, weight in weights.items():
                self._weights.setdefault(stem, {})[tool] = weight

    def replace(self, tools: Set[str], counts: Iterable[tuple[str, Mapping[str, float]]]) -> LearnedWords:
        """Return a copy in which the words of these tools are replaced by new counts.

        This value stays unchanged, for searches in other threads.
        """
        weighed = _weigh(counts)
        replaced = LearnedWords()
        replaced._of_tools = _without(self._of_tools, tools) | weighed
        replaced._lengths = _without(self._lengths, tools) | {
            tool: _length(weights) for tool, weights in weighed.items()
        }
        replaced._weights = {**self._weights}
        changed = {stem for tool in tools for stem in self._of_tools.get(tool, ())}
        changed |= {stem for weights in weighed.values() for stem in weights}
        for stem in changed:
            of_tools = _without(self._weights.get(stem, {}), tools)
            of_tools |= {tool: weights[stem] for tool, weights in weighed.items() if stem in weights}
            replaced._weights[stem] = of_tools
            if not of_tools:
                del replaced._weights[stem]
        return replaced

    def matches(
        self, stems: Iterable[str], positions: Mapping[str, int], allowed: bytes
    ) -> Mapping[int, float]:
        """Return the positions of the tools whose words are most similar to these stems, each with a similarity."""
        total = sum(allowed[positions[tool]] for tool in self._lengths if tool in positions)
        if not total:
            return {}
        scores: defaultdict[str, float] = defaultdict(float)
        rarities = []
        for stem in stems:
            weights = {
                tool: weight
                for tool, weight in self._weights.get(stem, {}).items()
                if tool in positions and allowed[positions[tool]]
            }
            rarity = math.log(1 + total / max(len(weights), 1))
            rarities.append(rarity)
            for tool, weight in weights.items():
                scores[tool] += rarity * weight
        length = math.hypot(*rarities)
        similarity = {positions[tool]: score / length / self._lengths[tool] for tool, score in scores.items()}
        best = heapq.nsmallest(
            _MAX_CANDIDATES, similarity, key=lambda position: (-similarity[position], position)
        )
        return {position: similarity[position] for position in best}


def _weigh(counts: Iterable[tuple[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the weights of each tool's stems, from their counts by tool and agent."""
    by_tool: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for tool, words in counts:
        for stem, count in words.items():
            by_tool[tool][stem] += min(count / MAX_COUNT, 1.0)
    return {
        tool: {stem: total / (1 + total) for stem, total in totals.items()}
        for tool, totals in by_tool.items()
    }


def _without(values: Mapping[str, _Value], tools: Set[str]) -> dict[str, _Value]:
    return {tool: value for tool, value in values.items() if tool not in tools}


def _length(weights: Mapping[str, float]) -> float:
    return math.hypot(_SHRINKAGE, *weights.values())


NOTHING = LearnedWords()


def _nothing() -> LearnedWords:
    return NOTHING


_source: Callable[[], LearnedWords] = _nothing


def use(source: Callable[[], LearnedWords]) -> None:
    """Search with the words that ``source`` returns; it is called for each search."""
    global _source
    _source = source


def current() -> LearnedWords:
    """Return the words that searches use now."""
    return _source()
