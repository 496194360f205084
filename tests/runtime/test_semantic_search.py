"""Tests that a server keeps sentence vectors in a file, or in memory if there is no writable file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.core import sentence_models
from tests.core.sentence_models import Model, found, prepared, tools
from toolbelt.core.search import current, sentences
from toolbelt.runtime import semantic_search


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Yield a model in place of the one from the optional dependency."""
    with sentence_models.installed(monkeypatch) as model:
        yield model


def test_vectors_are_read_from_the_file_after_a_restart(model: Model, tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    semantic_search.start()
    current.of(tools(first="Copy.", second="A quibbling thing."))
    sentences.wait()
    model.texts.clear()

    semantic_search.start()
    stored = tools(first="Copy all.", second="A quibbling thing.")
    current.of(stored)
    sentences.wait()

    assert model.texts == ["first.  Copy all."]
    assert found(stored, "zorblax") == ["second"]
    assert [file.name for file in tmp_path.iterdir()] == ["search-vectors.bin"]


def test_a_truncated_or_unwritable_file_is_tolerated(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "vectors.bin"
    stored = tools(first="Copy.", second="A quibbling thing.")
    prepared(stored, semantic_search.VectorFile(file))
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])

    again = tools(first="Copy.", second="A quibbling thing.")
    prepared(again, semantic_search.VectorFile(file))
    assert found(again, "zorblax") == ["second"]
    assert len(file.read_bytes()) == len(whole)

    elsewhere = tools(first="Copy.", second="A quibbling thing.")
    prepared(elsewhere, semantic_search.VectorFile(tmp_path / "missing" / "vectors.bin"))
    assert found(elsewhere, "zorblax") == ["second"]


@pytest.mark.parametrize("has_file", [True, False])
def test_vectors_are_kept_in_memory_without_a_writable_file(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_file: bool
) -> None:
    monkeypatch.setattr(sentences, "_BATCH_SIZE", 1)
    store = semantic_search.VectorFile(tmp_path / "missing" / "vectors.bin") if has_file else None
    # Not `capture_logs`: it does not reach a logger that has logged before another test configured logging again.
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr(semantic_search, "_log", log)
    prepared(tools(first="Copy.", second="Move."), store)
    model.texts.clear()
    stored = tools(first="Copy.", second="A quibbling thing.")
    sentences.prepare(current.of(stored))
    sentences.wait()

    assert model.texts == ["second.  A quibbling thing."]
    assert found(stored, "zorblax") == ["second"]
    assert len(log.calls) == has_file


def test_a_file_with_many_unused_records_is_rewritten(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentences, "_MAX_UNUSED", 0)
    file = tmp_path / "vectors.bin"
    prepared(tools(first="Copy.", second="Move."), semantic_search.VectorFile(file))
    both = len(file.read_bytes())

    prepared(tools(first="Copy."), semantic_search.VectorFile(file))

    assert len(file.read_bytes()) == both // 2
