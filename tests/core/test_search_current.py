"""Which index answers while a large catalog's own is being built."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from tests.core import building
from toolbelt.core import catalog, search
from toolbelt.core.search import current, tool_index


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(current, "SMALL", 0)
    monkeypatch.setattr(current, "_newest", None)
    while not taken.empty():
        taken.get()
    yield
    current.wait()


@pytest.fixture
def may_build(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold the thread that builds until the event is set."""
    event, build = threading.Event(), tool_index.of

    def held(stored: catalog.Catalog) -> tool_index.Index:
        taken.put(stored)
        assert event.wait(30)
        return build(stored)

    monkeypatch.setattr(tool_index, "of", held)
    yield event
    event.set()
    current.wait()


# The catalogs of which an index is being built.
taken: queue.SimpleQueue[catalog.Catalog] = queue.SimpleQueue()


def stored_with(*keys: str, **fields: str) -> catalog.Catalog:
    return building.catalog_of([building.tool(key, description=f"The {key}.", **fields) for key in keys])


def found(stored: catalog.Catalog, text: str) -> list[str]:
    return [hit.tool for hit in search.search(stored, stored.tools, text, 10)]


def test_a_search_is_answered_before_the_index_is_built(may_build: threading.Event) -> None:
    stored = stored_with("apple", "apple_pear", "plum")
    assert found(stored, "apple pear") == ["apple_pear", "apple"]
    assert current.ready(stored) is None
    may_build.set()
    current.wait()
    assert current.ready(stored) is search.index(stored)


def test_the_older_index_answers_and_new_tools_follow(may_build: threading.Event) -> None:
    may_build.set()
    older = stored_with("apple", "hammer")
    search.index(older)
    may_build.clear()
    newer = stored_with("apple", "hammer", "apple_pear")
    assert found(newer, "apple pear") == ["apple", "apple_pear"]
    assert current.ready(newer) is search.index(older)
    may_build.set()
    current.wait()
    assert found(newer, "apple pear") == ["apple_pear", "apple"]


def test_only_the_newest_of_several_catalogs_is_built_next(may_build: threading.Event) -> None:
    first, skipped, last = stored_with("apple"), stored_with("pear"), stored_with("plum")
    current.ready(first)
    assert taken.get(timeout=30) is first
    current.ready(skipped)
    current.ready(last)
    may_build.set()
    current.wait()
    assert taken.get(timeout=30) is last
    assert taken.empty()


def test_a_catalog_with_the_same_texts_takes_over_the_index(may_build: threading.Event) -> None:
    may_build.set()
    older = stored_with("apple")
    index = search.index(older)
    blocked = building.catalog_of([building.tool("apple", description="The apple.", blocked=True)])
    for stored in (stored_with("apple"), blocked):
        assert found(stored, "apple") == ["apple"]
        assert search.index(stored) is index


def test_tools_that_are_gone_are_not_found_in_an_older_index(may_build: threading.Event) -> None:
    may_build.set()
    search.index(stored_with("apple", "plum"))
    may_build.clear()
    assert found(stored_with("apple"), "plum apple") == ["apple"]
