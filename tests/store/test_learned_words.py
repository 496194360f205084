"""Tests that learned words are limited in number, decay, and can be erased."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection

from toolbelt.store import clock, learned_words
from toolbelt.store.learned_words import Lesson

pytestmark = pytest.mark.django_db
NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def test_words_are_counted_by_tool_and_agent() -> None:
    learned_words.add_all([Lesson("fetch", "ada", ("lead", "client"))])
    learned_words.add_all([Lesson("fetch", "ada", ("lead",)), Lesson("fetch", "bob", ("lead",))])

    with clock.stopped(clock.now()):
        counts = [(tool, {stem: round(count) for stem, count in words.items()}) for tool, words in read()]
    assert counts == [("fetch", {"lead": 2, "client": 1}), ("fetch", {"lead": 1})]
    assert learned_words.count() == learned_words.Stats(words=2, tools=1)
    assert learned_words.coverage() == learned_words.Coverage(tools=1, agents=2)


def read() -> list[tuple[str, dict[str, float]]]:
    return [(tool, dict(words)) for tool, words in learned_words.counts(learned_words.read())]


def test_the_weight_of_a_word_halves_with_its_half_life_until_it_is_dropped() -> None:
    with clock.stopped(NOW):
        learned_words.add_all([Lesson("fetch", "ada", ("lead",))])
    with clock.stopped(NOW + learned_words.HALF_LIFE):
        assert read() == [("fetch", {"lead": 0.5})]
        learned_words.add_all([Lesson("fetch", "ada", ("lead",))])
        assert read() == [("fetch", {"lead": 1.5})]
    with clock.stopped(NOW + 5 * learned_words.HALF_LIFE):
        assert learned_words.count() == learned_words.Stats(words=0, tools=0)


def test_only_changed_rows_are_reread() -> None:
    learned_words.add_all([Lesson("fetch", "ada", ("lead",)), Lesson("push", "ada", ("commit",))])
    known = learned_words.read()
    learned_words.add_all([Lesson("push", "ada", ("branch",))])

    updated = learned_words.read(known)

    assert updated[("fetch", "ada")] is known[("fetch", "ada")]
    assert updated[("push", "ada")][1].keys() == {"commit", "branch"}
    learned_words.erase(tool="fetch")
    assert learned_words.read(updated).keys() == {("push", "ada")}


def test_the_strongest_words_of_a_tool_and_agent_are_kept() -> None:
    many = tuple(f"word{number:03}" for number in range(learned_words.MAX_WORDS + 20))
    learned_words.add_all([Lesson("fetch", "ada", many), Lesson("fetch", "ada", many[-3:])])

    ((_, words),) = read()
    assert len(words) == learned_words.MAX_WORDS
    assert set(many[-3:]) <= words.keys()


def test_agents_per_tool_and_total_rows_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learned_words, "MAX_AGENTS", 2)
    monkeypatch.setattr(learned_words, "MAX_ROWS", 3)
    for day, (tool, agent) in enumerate([("a", "x"), ("a", "y"), ("a", "z"), ("b", "x"), ("c", "x")]):
        with clock.stopped(NOW + dt.timedelta(days=day)):
            learned_words.add_all([Lesson(tool, agent, (f"of{agent}",))])

    with clock.stopped(NOW + dt.timedelta(days=5)):
        assert [(tool, *words) for tool, words in read()] == [("a", "ofz"), ("b", "ofx"), ("c", "ofx")]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL, which locks rows")
@pytest.mark.django_db(transaction=True)
def test_rows_locked_by_another_process_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_words, "MAX_AGENTS", 1)
    learned_words.add_all([Lesson("fetch", "ada", ("lead",))])
    other: Any = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT agent FROM toolbelt_learnedwords FOR UPDATE")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
            learned_words.add_all([Lesson("fetch", "bob", ("lead",))])
            cursor.execute("RESET lock_timeout")
        assert len(read()) == 2
    finally:
        # Closing alone lets the database end the transaction some time later.
        other.rollback()
        other.close()
    learned_words.add_all([Lesson("fetch", "eve", ("client",))])

    ((_, words),) = read()
    assert words.keys() == {"client"}


@pytest.mark.parametrize(
    ("filters", "remaining"),
    [
        ({"tool": "a"}, [("b", "ada")]),
        ({"agent": "ada"}, [("a", "bob")]),
        ({"tool": "a", "agent": "ada"}, [("a", "bob"), ("b", "ada")]),
        ({}, []),
    ],
)
def test_words_can_be_erased_by_tool_by_agent_or_entirely(
    filters: dict[str, str], remaining: list[tuple[str, str]]
) -> None:
    learned_words.add_all([Lesson(*pair, (pair[1],)) for pair in (("a", "ada"), ("a", "bob"), ("b", "ada"))])

    learned_words.erase(**filters)

    assert [(tool, *words) for tool, words in read()] == remaining
