"""The matrix that transforms the vectors of the sentence model, for the search of tools. Its file is sentences.npz.

The model was trained to match sentences of the same meaning, not requests and tools. The matrix starts as the identity,
and is fitted like the word vectors (scripts/search/train_vectors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scripts.search import train_vectors
from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import documents, queries, sentence_model, vectors

PASSES, TEMPERATURE, RATE, FITS = 5, 0.07, 0.001, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The original vectors of each set's tools and requests, and the right tools for each request."""

    tools: dict[str, Any]
    requests: dict[str, Any]
    groups: dict[str, Sequence[Sequence[Sequence[int]]]]


def prepare(
    sets: Sequence[search_benchmark.RequestSet],
    groups: dict[str, Sequence[Sequence[Sequence[int]]]],
    embed: sentence_model.Embed,
) -> Start:
    """Return the start of every fit. ``groups`` are those of the word vectors, by the positions of the tools."""
    tools = {
        request_set.name: sorted(
            (documents.of(request_set.stored, tool) for tool in request_set.stored.tools.values()),
            key=lambda doc: doc.key,
        )
        for request_set in sets
    }
    return Start(
        tools={name: embed([doc.sentence for doc in docs]) for name, docs in tools.items()},
        requests={
            request_set.name: embed([queries.parse(text).text for text in request_set.texts])
            for request_set in sets
        },
        groups=groups,
    )


def fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool]) -> Any:
    """Return the matrix fitted to the chosen requests (by number) of these sets, as read back from its file."""
    return table(sum(_fit(start, names, chosen, seed) for seed in range(FITS)) / FITS).matrix()


def table(matrix: Any) -> vectors.Table:
    """Return the rows of a matrix as a table, by their numbers."""
    return train_vectors.table(list(map(str, range(len(matrix)))), matrix)


def _fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool], seed: int) -> Any:
    matrix = np.eye(sentence_model.SIZE)
    optimizer = train_vectors.Adam(matrix)
    random = np.random.RandomState(seed)
    for number_of_pass in range(PASSES):
        rate = RATE * (1 - train_vectors.FALL * number_of_pass / PASSES)
        for name, numbers in train_vectors.batches(start.groups, names, chosen, random):
            optimizer.step(_slope(start, name, numbers, matrix), rate)
    return matrix


def _slope(start: Start, name: str, numbers: Sequence[int], matrix: Any) -> Any:
    """Return the gradient of the error with respect to the matrix."""
    requests, tools = start.requests[name][numbers], start.tools[name]
    request_slope, tool_slope = train_vectors.slopes(
        requests @ matrix, tools @ matrix, [start.groups[name][number] for number in numbers], TEMPERATURE
    )
    return requests.T @ request_slope + tools.T @ tool_slope
