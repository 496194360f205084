"""Tests which index answers while that of a large catalog is being built."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from tests.core import building
from toolbelt.core import catalog
from toolbelt.core.search import current, engine, tool_index


@pytest.fixture(autouse=True)
def _treat_every_catalog_as_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(current, "SMALL", 0)
    monkeypatch.setattr(current, "_newest", None)
    while not builds_started.empty():
        builds_started.get()
    yield
    current.wait()


@pytest.fixture
def build_permission(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block the building thread until the event is set."""
    event, build = threading.Event(), tool_index.of

    def blocking_build(stored: catalog.Catalog) -> tool_index.Index:
        builds_started.put(stored)
        assert event.wait(30)
        return build(stored)

    monkeypatch.setattr(tool_index, "of", blocking_build)
    yield event
    event.set()
    current.wait()


# The catalogs whose index the building thread started to build.
builds_started: queue.SimpleQueue[catalog.Catalog] = queue.SimpleQueue()


def stored_with(*keys: str, **fields: str) -> catalog.Catalog:
    return building.catalog_of([building.tool(key, description=f"The {key}.", **fields) for key in keys])


def found_keys(stored: catalog.Catalog, text: str) -> list[str]:
    return [hit.tool for hit in engine.search(stored, stored.tools, text, 10)]


def test_a_search_is_answered_while_the_index_is_built(build_permission: threading.Event) -> None:
    stored = stored_with("apple", "apple_pear", "plum")
    assert found_keys(stored, "apple pear") == ["apple_pear", "apple"]
    assert current.ready(stored) is None
    build_permission.set()
    current.wait()
    assert current.ready(stored) is current.of(stored)


def test_an_older_index_answers_and_new_tools_are_appended(build_permission: threading.Event) -> None:
    build_permission.set()
    older = stored_with("apple", "hammer")
    current.of(older)
    build_permission.clear()
    newer = stored_with("apple", "hammer", "apple_pear")
    assert found_keys(newer, "apple pear") == ["apple", "apple_pear"]
    assert current.ready(newer) is current.of(older)
    build_permission.set()
    current.wait()
    assert found_keys(newer, "apple pear") == ["apple_pear", "apple"]


def test_only_the_newest_of_several_catalogs_is_built_next(build_permission: threading.Event) -> None:
    first, skipped, last = stored_with("apple"), stored_with("pear"), stored_with("plum")
    current.ready(first)
    assert builds_started.get(timeout=30) is first
    current.ready(skipped)
    current.ready(last)
    build_permission.set()
    current.wait()
    assert builds_started.get(timeout=30) is last
    assert builds_started.empty()


def test_a_catalog_with_the_same_texts_reuses_the_index(build_permission: threading.Event) -> None:
    build_permission.set()
    older = stored_with("apple")
    index = current.of(older)
    blocked = building.catalog_of([building.tool("apple", description="The apple.", blocked=True)])
    for stored in (stored_with("apple"), blocked):
        assert found_keys(stored, "apple") == ["apple"]
        assert current.of(stored) is index


def test_removed_tools_are_not_found_in_an_older_index(build_permission: threading.Event) -> None:
    build_permission.set()
    current.of(stored_with("apple", "plum"))
    build_permission.clear()
    assert found_keys(stored_with("apple"), "plum apple") == ["apple"]
