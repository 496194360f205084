"""The ranker: a weight for each term, learned from requests and the tools that served them.

Terms are the features, and what a feature has above certain values: so that a feature may count more, or less, from
there on.

A request may need several tools. So the first results are chosen one after another: after the best, a tool gains if it
fits a clause better than all that are chosen.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from toolbelt.core.search import features
from toolbelt.core.search.vectors import Array

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

    terms: Array
    gains: Array


@functools.cache
def weights() -> Weights:
    """Return the built-in weights."""
    return _read(FILE, TERMS)


@functools.cache
def weights_with_sentences() -> Weights:
    """Return the weights for candidates with features of sentences."""
    return _read(FILE_WITH_SENTENCES, TERMS_WITH_SENTENCES)


def terms(features_: Array) -> Array:
    """Return the terms of candidates from their features: a row for each."""
    has_sentences = features_.shape[1] == len(_NAMES)
    at, knots = zip(*(_KNOTS + _KNOTS_OF_SENTENCES if has_sentences else _KNOTS), strict=True)
    return np.hstack([features_, np.maximum(features_[:, at] - knots, 0.0)])


def scores(features_: Array, by: Weights) -> Array:
    """Return the scores of candidates; the higher, the better one fits."""
    return np.round(terms(features_) @ by.terms, 6)


def order(scored: Array, by_clause: Sequence[Array], gains: Array) -> list[int]:
    """Return the positions of the candidates, the best first; equal ones in their order."""
    in_order: list[int] = np.argsort(-scored, kind="stable").tolist()
    chosen, waiting = in_order[:1], in_order[1:AMONG]
    while waiting and len(chosen) < CHOSEN:
        improved = np.round(scored[waiting] + improvements(by_clause, chosen, waiting) @ gains, 6)
        chosen.append(waiting.pop(int(np.argmax(improved))))
    return [*chosen, *waiting, *in_order[AMONG:]]


def improvements(by_clause: Sequence[Array], chosen: Sequence[int], waiting: Sequence[int]) -> Array:
    """Return the largest improvement of each waiting tool over the chosen ones in any clause, for each measure."""
    return np.column_stack(
        [np.maximum(table[waiting] - table[chosen].max(0), 0.0).max(1) for table in by_clause]
    )


def _read(file: str, names: Sequence[str]) -> Weights:
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    stored: Mapping[str, Mapping[str, float]] = json.loads(text)
    gains = stored["gains"]
    return Weights(
        terms=np.array([stored["weights"][name] for name in names]),
        gains=np.array([gains[name] for name in features.BY_CLAUSE if name in gains]),
    )
