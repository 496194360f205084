"""The ranker: a weight for each term, learned from requests and the tools that served them.

Terms are the features, and what a feature has above certain values: so that a feature may count more, or less, from
there on.

A request may need several tools. So the first results are chosen one after another: after the best, a tool gains if it
fits a clause better than all that are chosen.
"""

from __future__ import annotations

import functools
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from operator import mul, sub

from toolbelt.core.search import features

# The values from which on features count differently.
KNOTS: Mapping[str, tuple[float, ...]] = {
    "lexical": (0.5, 0.8),
    "lexical of clause": (0.5, 0.9),
    "cosine": (0.1, 0.25),
    "name": (0.5,),
    "name of clause": (0.5,),
    "query": (0.3, 0.6),
    "clause": (0.5,),
    "parameters": (0.2,),
    "query in first sentence": (0.3,),
    "toolkit": (0.5,),
    "meaning": (0.3, 0.5, 0.7),
    "meaning of clause": (0.3, 0.5, 0.7),
    "meaning behind best": (-0.2, -0.1, -0.05),
    "clause meaning behind best": (-0.2, -0.1, -0.05),
}
KNOTS_OF_SENTENCES: Mapping[str, tuple[float, ...]] = {
    "sentence": (0.3, 0.5, 0.7),
    "sentence of clause": (0.3, 0.5, 0.7),
    "sentence behind best": (-0.2, -0.1, -0.05),
    "clause sentence behind best": (-0.2, -0.1, -0.05),
}
_NAMES = (*features.NAMES, *features.OF_SENTENCES)
_KNOTS = [(_NAMES.index(name), knot) for name, knots in KNOTS.items() for knot in knots]
_KNOTS_OF_SENTENCES = [
    (_NAMES.index(name), knot) for name, knots in KNOTS_OF_SENTENCES.items() for knot in knots
]
TERMS = (*features.NAMES, *(f"{_NAMES[at]} above {knot}" for at, knot in _KNOTS))
TERMS_WITH_SENTENCES = (
    *_NAMES,
    *(f"{_NAMES[at]} above {knot}" for at, knot in (*_KNOTS, *_KNOTS_OF_SENTENCES)),
)
FILE, FILE_WITH_SENTENCES = "weights.json", "weights_semantic.json"
# The number of results that are chosen one after another, and the number of best candidates among which.
CHOSEN, AMONG = 10, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of the terms, and of the gain of a tool that fits a clause better (see ``features.BY_CLAUSE``)."""

    terms: Sequence[float]
    gains: Sequence[float]


@functools.cache
def weights() -> Weights:
    """Return the built-in weights."""
    return _read(FILE, TERMS)


@functools.cache
def weights_with_sentences() -> Weights:
    """Return the weights for candidates with features of sentences."""
    return _read(FILE_WITH_SENTENCES, TERMS_WITH_SENTENCES)


def terms(candidate: features.Candidate) -> list[float]:
    """Return the terms of a candidate, in their order."""
    values = candidate.features
    above = [values[at] - knot if values[at] > knot else 0.0 for at, knot in _KNOTS]
    if len(values) == len(_NAMES):
        above += [values[at] - knot if values[at] > knot else 0.0 for at, knot in _KNOTS_OF_SENTENCES]
    return [*values, *above]


def score(candidate: features.Candidate, by: Weights) -> float:
    """Return the score of a candidate; the higher, the better it fits."""
    weighed: float = sum(map(mul, terms(candidate), by.terms))
    return round(weighed, 6)


def order(
    scores: Sequence[float], by_clause: Sequence[Sequence[Sequence[float]]], gains: Sequence[float]
) -> Iterator[int]:
    """Yield the positions of the candidates, the best first; equal ones in their order."""
    in_order = sorted(range(len(scores)), key=lambda at: -scores[at])
    yield from in_order[:1]
    reached = [list(values) for values in by_clause[in_order[0]]] if in_order else []
    # Gains only decrease as more tools are chosen, so a score that was computed earlier is an upper bound. The first
    # tool whose score was computed after the last choice is therefore the best.
    waiting = [(-scores[at] - _gain(by_clause[at], reached, gains), at, 1) for at in in_order[1:AMONG]]
    heapq.heapify(waiting)
    count = 1
    while waiting and count < CHOSEN:
        _, at, when = heapq.heappop(waiting)
        if when < count:
            heapq.heappush(waiting, (-scores[at] - _gain(by_clause[at], reached, gains), at, count))
            continue
        yield at
        count += 1
        reached = [list(map(max, *both)) for both in zip(reached, by_clause[at], strict=True)]
    left = {at for _, at, _ in waiting}
    yield from (at for at in in_order[1:AMONG] if at in left)
    yield from in_order[AMONG:]


def improvement(by_clause: Sequence[Sequence[float]], reached: Sequence[Sequence[float]]) -> list[float]:
    """Return the largest improvement of a tool over ``reached`` in any clause, for each measure."""
    return [max(0.0, *map(sub, *both)) for both in zip(by_clause, reached, strict=True)]


def _gain(
    by_clause: Sequence[Sequence[float]], reached: Sequence[Sequence[float]], gains: Sequence[float]
) -> float:
    gain: float = sum(map(mul, gains, improvement(by_clause, reached)))
    return gain


def _read(file: str, names: Sequence[str]) -> Weights:
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    stored: Mapping[str, Mapping[str, float]] = json.loads(text)
    gains = stored["gains"]
    return Weights(
        terms=tuple(stored["weights"][name] for name in names),
        gains=tuple(gains[name] for name in features.BY_CLAUSE if name in gains),
    )
