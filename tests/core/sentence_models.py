"""A sentence model for tests, which replaces that of the optional extra."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tests.core import building
from toolbelt.core import catalog
from toolbelt.core.search import current, engine, sentence_model, sentences, tool_index, vectors

# Both words mean the same to the model, and nothing to the word vectors.
MEANINGS = ("zorblax", "quibbling")


class Model:
    """A model that knows two words, and records the texts that it is called with."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> vectors.Array:
        self.texts += texts
        return np.array([self._vector(text) for text in texts])

    def _vector(self, text: str) -> list[float]:
        is_meant = any(word in text for word in MEANINGS)
        return [1.0 if at == is_meant else 0.0 for at in range(sentence_model.SIZE)]


@contextlib.contextmanager
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Replace the sentence model of the optional extra."""
    # A command that ran in an earlier test chose the file in the folder of the installation.
    sentences.use(None)
    model = Model()
    monkeypatch.setattr(sentence_model, "is_installed", lambda: True)
    monkeypatch.setattr(sentence_model, "_model", lambda: model)
    monkeypatch.setattr(sentence_model, "_embed", None)
    monkeypatch.setattr(sentence_model, "_error", "")
    yield model
    # A thread of this test would write to the store of the next test.
    sentences.wait()
    sentences.use(None)


def tools(**texts: str) -> catalog.Catalog:
    return building.catalog_of([building.tool(key, description=text) for key, text in texts.items()])


def prepared(stored: catalog.Catalog, store: sentences.VectorStore | None = None) -> tool_index.Index:
    sentences.use(store or sentences.MemoryStore())
    index = current.of(stored)
    sentences.wait()
    sentences.prepare(index)
    return index


def found(stored: catalog.Catalog, text: str, among: str = "") -> list[str]:
    return [hit.tool for hit in engine.search(stored, among.split() or list(stored.tools), text, 10)]
