"""The ranker: a weight for each feature, learned from requests and the tools that served them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from operator import mul

from toolbelt.core.search import features


@functools.cache
def weights() -> tuple[float, ...]:
    """Return the weights that come with Toolbelt, in the order of the features."""
    return read(resources.files(__package__).joinpath("weights.json").read_text(encoding="utf-8"))


def read(text: str) -> tuple[float, ...]:
    """Return the weights that a file holds, in the order of the features."""
    stored: Mapping[str, float] = json.loads(text)["weights"]
    return tuple(stored[name] for name in features.NAMES)


def score(candidate: features.Candidate, by: Sequence[float]) -> float:
    """Return the score of a candidate; the higher, the better it fits."""
    weighed: float = sum(map(mul, candidate.features, by))
    return weighed
