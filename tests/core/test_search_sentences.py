"""Tests that a sentence model, if installed, also finds tools by the similarity of sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import structlog

from tests.core import sentence_models
from tests.core.sentence_models import Model, found, prepared, tools
from toolbelt.core.search import current, sentence_model, sentences


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Replace the sentence model of the optional extra."""
    with sentence_models.installed(monkeypatch) as model:
        yield model


def test_a_tool_is_found_by_its_sentence_vector(model: Model) -> None:
    stored = tools(first="Copy.", second="A quibbling thing.")
    assert found(stored, "zorblax") == []

    prepared(stored)

    assert found(stored, "zorblax") == ["second"]
    assert found(stored, "zorblax", among="first") == []


def test_each_step_of_a_request_is_embedded_separately(model: Model) -> None:
    stored = tools(first="Copy a file.", second="A quibbling thing.")
    prepared(stored)

    assert set(found(stored, "copy a file, then do zorblax")) == {"first", "second"}
    assert model.texts[-3:] == ["copy a file, then do zorblax", "copy a file", "do zorblax"]


def test_an_unchanged_text_keeps_its_vector(model: Model) -> None:
    store = sentences.MemoryStore()
    prepared(tools(first="Copy.", second="A quibbling thing."), store)
    model.texts.clear()

    stored = tools(first="Copy all.", second="A quibbling thing.")
    prepared(stored, store)

    assert model.texts == ["first.  Copy all."]
    assert found(stored, "zorblax") == ["second"]


def test_retrained_vectors_replace_the_vector_of_each_text(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sentences.MemoryStore()
    prepared(tools(first="Copy."), store)
    model.texts.clear()
    monkeypatch.setattr(sentence_model, "matrix_file", lambda: b"another")
    sentences._version.cache_clear()
    try:
        prepared(tools(first="Copy."), store)
    finally:
        sentences._version.cache_clear()

    assert model.texts == ["first.  Copy."]


def test_unused_vectors_are_dropped_from_memory(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_MAX_UNUSED", 0)
    prepared(tools(first="Copy.", second="Move."))
    sentences.wait()
    model.texts.clear()
    for stored in (tools(first="Copy."), tools(second="Move.")):
        sentences.prepare(current.of(stored))
        sentences.wait()

    assert model.texts == ["second.  Move."]


def test_vectors_are_computed_in_a_background_thread(model: Model) -> None:
    sentences.use(sentences.MemoryStore())
    stored = tools(second="A quibbling thing.")
    index = current.of(stored)
    sentences.wait()

    assert len(index.sentences) == 1


def test_a_failing_model_is_logged_once_and_search_continues(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise OSError("no such file: model.onnx")

    monkeypatch.setattr(sentence_model, "_model", fail)
    # `capture_logs` does not work here: it misses a logger that logged before another test reconfigured logging.
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr(sentence_model, "_log", log)
    stored = tools(first="Copy.")
    prepared(stored)
    prepared(stored)

    assert [call.method_name for call in log.calls] == ["warning"]
    assert sentence_model.status() == "failed"
    assert sentence_model.error() == "no such file: model.onnx"
    assert found(stored, "copy") == ["first"]


def test_the_model_is_not_imported_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_model, "is_installed", lambda: False)
    monkeypatch.setattr(sentence_model, "_model", lambda: pytest.fail("imports the model"))
    stored = tools(first="Copy.")
    try:
        index = prepared(stored)
    finally:
        sentences.use(None)

    assert index.sentences == []
    assert sentence_model.status() == "not installed"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Send an e-mail.", [4604, 2019, 1041, 1011, 5653, 1012]),
        ("tokenization", [19204, 3989]),
        ("Café 天", [7668, 1811]),
        ("\N{SNOWMAN}" * 2, [100, 100]),
    ],
)
def test_texts_are_split_into_the_models_tokens(text: str, numbers: list[int]) -> None:
    assert sentence_model.token_numbers(text) == [101, *numbers, 102]


def test_long_texts_are_truncated() -> None:
    assert len(sentence_model.token_numbers("copy " * 500)) == 96


@pytest.mark.sentence_model
@pytest.mark.skipif(
    not sentence_model.is_installed(), reason="scripts/sentence_model.sh installs the extra, and runs this"
)
def test_the_model_of_the_extra_ranks_similar_sentences_higher() -> None:
    embed = sentence_model.load()
    assert embed is not None
    mail, letter, file = embed(["send an email", "mail a letter", "delete a file"])

    assert mail @ letter > 2 * mail @ file
    (original,) = sentence_model.model(np.eye(sentence_model.SIZE))(["send an email"])
    assert mail @ original < 0.99, "the matrix turns the vectors"
    assert mail @ mail == pytest.approx(1, abs=1e-3)
