"""Learned words change the order of tools, by no more than the words of one agent may, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core import building
from toolbelt.core import search

STORED = building.catalog_of(
    [
        building.tool("crm__fetch_a", description="Fetch an entity."),
        building.tool("crm__merge", description="Merge two entities."),
        building.tool("crm__fetch_b", description="Fetch an entity."),
    ]
)


@pytest.fixture(autouse=True)
def nothing_learned() -> Iterator[None]:
    yield
    search.use_learned(lambda: search.NOTHING_LEARNED)


def learn(*counts: tuple[str, dict[str, float]]) -> None:
    words = search.LearnedWords(counts)
    search.use_learned(lambda: words)


def found(text: str, among: str = "") -> list[search.Hit]:
    return list(search.search(STORED, among.split() or list(STORED.tools), text, 10))


def test_a_tool_is_found_by_the_words_of_earlier_requests() -> None:
    assert found("zorblax prospects") == []

    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert [hit.tool for hit in found("zorblax prospects")] == ["crm__fetch_b"]


def test_words_of_earlier_requests_decide_between_tools_that_fit_equally() -> None:
    assert found("fetch zorblax")[0].tool == "crm__fetch_a"

    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert found("fetch zorblax")[0].tool == "crm__fetch_b"


def test_learned_words_are_not_shown() -> None:
    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert found("zorblax")[0].matched == ()


def test_a_tool_that_the_agent_may_not_have_is_not_found_by_its_words() -> None:
    learn(("crm__fetch_b", {"zorblax": 1.0}))

    assert found("zorblax", among="crm__fetch_a crm__merge") == []


def test_words_of_tools_that_the_agent_may_not_have_change_no_score() -> None:
    words = ("crm__fetch_a", {"zorblax": 1.0, "quux": 2.0})
    learn(words)
    alone = found("zorblax entity", among="crm__fetch_a crm__merge")

    learn(words, ("crm__fetch_b", {"zorblax": 3.0, "quux": 1.0}))

    assert found("zorblax entity", among="crm__fetch_a crm__merge") == alone


def test_one_agent_counts_no_more_however_often_it_asks() -> None:
    learn(("crm__fetch_b", {"zorblax": 3.0}))
    few = found("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 10.0}))
    many = found("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 3.0}), ("crm__fetch_b", {"zorblax": 3.0}))
    two_agents = found("zorblax")[0].score

    assert few == many < two_agents


def test_many_words_of_one_tool_dilute_each_other() -> None:
    learn(("crm__fetch_b", {"zorblax": 3.0}))
    alone = found("zorblax")[0].score

    learn(("crm__fetch_b", {"zorblax": 3.0} | {f"word{number}": 3.0 for number in range(50)}))

    assert found("zorblax")[0].score < alone


def test_words_of_some_tools_are_replaced_as_if_all_were_weighed_again() -> None:
    before = search.LearnedWords([("a", {"x": 1.0, "y": 3.0}), ("b", {"x": 2.0}), ("c", {"z": 1.0})])
    after = before.replace({"a", "c"}, [("a", {"x": 3.0}), ("a", {"w": 1.0}), ("c", {})])

    places = {"a": 0, "b": 1, "c": 2}
    expected = search.LearnedWords([("a", {"x": 3.0}), ("a", {"w": 1.0}), ("b", {"x": 2.0}), ("c", {})])
    for stem in "wxyz":
        assert after.matches([stem], places, bytes([1, 1, 1])) == expected.matches(
            [stem], places, bytes([1, 1, 1])
        )
    assert before.matches(["z"], places, bytes([1, 1, 1])).keys() == {2}
