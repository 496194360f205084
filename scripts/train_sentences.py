"""The matrix that turns the vectors of the sentence model, for the search of tools: its file is sentences.bin.

The model knows which sentences mean the same; a request and the tool that serves it are something else. The matrix
starts as one that changes nothing, and is fitted as the word vectors are (scripts/train_vectors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scripts import train_vectors
from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import documents, queries, sentence_model, vectors

PASSES, TEMPERATURE, RATE, FITS = 5, 0.07, 0.001, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The original vectors of each set's tools and requests, and which tools serve each request."""

    tools: dict[str, Any]
    requests: dict[str, Any]
    groups: dict[str, Sequence[Sequence[Sequence[int]]]]


def prepare(
    sets: Sequence[search_benchmark.RequestSet],
    groups: dict[str, Sequence[Sequence[Sequence[int]]]],
    embed: sentence_model.Embed,
) -> Start:
    """Return what every fit starts with; ``groups`` are those of the word vectors, by the places of the tools."""
    tools = {
        one.name: sorted(
            (documents.of(one.stored, tool) for tool in one.stored.tools.values()), key=lambda doc: doc.key
        )
        for one in sets
    }
    return Start(
        tools={name: np.array(embed([doc.sentence for doc in docs])) for name, docs in tools.items()},
        requests={
            one.name: np.array(embed([queries.parse(text).text for text in one.texts])) for one in sets
        },
        groups=groups,
    )


def fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool]) -> Any:
    """Return the matrix fitted to the chosen requests (by number) of these sets, as it will be read from its file."""
    table = vectors.unpack(pack(sum(_fit(start, names, chosen, seed) for seed in range(FITS)) / FITS))
    return np.array(list(vectors.rows(table).values()))


def pack(matrix: Iterable[Any]) -> bytes:
    """Return the file of a matrix."""
    return vectors.pack({str(number): row for number, row in enumerate(matrix)})


def _fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool], seed: int) -> Any:
    matrix = np.eye(sentence_model.SIZE)
    moving = train_vectors.Adam(matrix)
    random = np.random.RandomState(seed)
    for number_of_pass in range(PASSES):
        rate = RATE * (1 - train_vectors.FALL * number_of_pass / PASSES)
        for name, numbers in train_vectors.batches(start.groups, names, chosen, random):
            moving.step(_slope(start, name, numbers, matrix), rate)
    return matrix


def _slope(start: Start, name: str, numbers: Sequence[int], matrix: Any) -> Any:
    """Return how the error changes with the matrix."""
    asked, tools = start.requests[name][numbers], start.tools[name]
    of_request, of_tool = train_vectors.slopes(
        asked @ matrix, tools @ matrix, [start.groups[name][number] for number in numbers], TEMPERATURE
    )
    return asked.T @ of_request + tools.T @ of_tool
