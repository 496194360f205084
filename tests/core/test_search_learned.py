"""Tests that learned words affect the order of results only, and each agent by a bounded amount."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core import building
from toolbelt.core.search import engine, learned

STORED = building.catalog_of(
    [
        building.tool("crm__fetch_a", description="Fetch an entity."),
        building.tool("crm__merge", description="Merge two entities."),
        building.tool("crm__fetch_b", description="Fetch an entity."),
    ]
)


@pytest.fixture(autouse=True)
def reset_learned_words() -> Iterator[None]:
    yield
    learned.use(lambda: learned.NOTHING)


def learn(*counts: tuple[str, dict[str, float]]) -> None:
    words = learned.LearnedWords(counts)
    learned.use(lambda: words)


def hits(text: str, among: str = "") -> list[engine.Hit]:
    return list(engine.search(STORED, among.split() or list(STORED.tools), text, 10))


def test_a_tool_is_found_by_the_words_of_earlier_requests() -> None:
    assert hits("zorblax prospects") == []

    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert [hit.tool for hit in hits("zorblax prospects")] == ["crm__fetch_b"]


def test_words_of_earlier_requests_break_ties_between_tools() -> None:
    assert hits("fetch zorblax")[0].tool == "crm__fetch_a"

    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert hits("fetch zorblax")[0].tool == "crm__fetch_b"


def test_learned_words_are_not_reported_as_matches() -> None:
    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert hits("zorblax")[0].matched == ()


def test_a_tool_that_the_agent_may_not_have_is_not_found_by_learned_words() -> None:
    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert hits("zorblax", among="crm__fetch_a crm__merge") == []


def test_learned_words_of_disallowed_tools_do_not_change_scores() -> None:
    words = ("crm__fetch_a", {"zorblax": 1.0, "quux": 2.0})
    learn(words)
    alone = hits("zorblax entity", among="crm__fetch_a crm__merge")

    learn(words, ("crm__fetch_b", {"zorblax": 3.0, "quux": 1.0}))

    assert hits("zorblax entity", among="crm__fetch_a crm__merge") == alone


def test_repeated_requests_of_one_agent_do_not_raise_a_score() -> None:
    learn(("crm__fetch_b", {"zorblax": 3.0}))
    few = hits("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 10.0}))
    many = hits("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 3.0}), ("crm__fetch_b", {"zorblax": 3.0}))
    two_agents = hits("zorblax")[0].score

    assert few == many < two_agents


def test_many_words_of_one_tool_dilute_each_other() -> None:
    learn(("crm__fetch_b", {"zorblax": 3.0}))
    alone = hits("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 3.0} | {f"word{number}": 3.0 for number in range(50)}))

    assert hits("zorblax")[0].score < alone


def test_replacing_words_of_some_tools_equals_reweighing_all() -> None:
    before = learned.LearnedWords([("a", {"x": 1.0, "y": 3.0}), ("b", {"x": 2.0}), ("c", {"z": 1.0})])
    after = before.replace({"a", "c"}, [("a", {"x": 3.0}), ("a", {"w": 1.0}), ("c", {})])

    places = {"a": 0, "b": 1, "c": 2}
    expected = learned.LearnedWords([("a", {"x": 3.0}), ("a", {"w": 1.0}), ("b", {"x": 2.0}), ("c", {})])
    for stem in "wxyz":
        assert after.matches([stem], places, bytes([1, 1, 1])) == expected.matches(
            [stem], places, bytes([1, 1, 1])
        )
    assert before.matches(["z"], places, bytes([1, 1, 1])).keys() == {2}
