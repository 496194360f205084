"""Tests of the order of results: the best first, then tools that fit a clause better than those before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolbelt.core.search import ranking


def order(*tools: tuple[float, Sequence[float]], gain: float = 1.0) -> list[int]:
    """Return the order of tools, each given as its score and its fit to each clause."""
    scores = [score for score, _ in tools]
    return ranking.order(np.array(scores), [np.array([clauses for _, clauses in tools])], np.array([gain]))


def test_a_tool_for_another_clause_precedes_a_second_one_for_the_same() -> None:
    assert order((3.0, [0.9, 0.0]), (2.0, [0.9, 0.0]), (1.5, [0.0, 0.8])) == [0, 2, 1]


def test_without_a_gain_the_order_is_by_score() -> None:
    assert order((1.5, [0.0, 0.8]), (3.0, [0.9, 0.0]), (2.0, [0.9, 0.0]), gain=0.0) == [1, 2, 0]


def test_the_best_tool_stays_first_whatever_the_gain() -> None:
    assert order((3.0, [0.1, 0.1]), (2.9, [0.9, 0.9]), gain=100.0) == [0, 1]


def test_a_clause_that_is_already_covered_gives_no_gain() -> None:
    assert order((4.0, [0.9, 0.0]), (1.0, [0.0, 0.8]), (1.1, [0.0, 0.7]), (1.2, [0.5, 0.0]), gain=2.0) == [
        0,
        1,
        3,
        2,
    ]


def test_each_measure_has_its_own_gain() -> None:
    by_clause = [np.array([[0.5], [0.9], [0.5]]), np.array([[0.5], [0.5], [0.9]])]
    assert ranking.order(np.array([1.0, 0.0, 0.0]), by_clause, np.array([1.0, 2.0])) == [0, 2, 1]


def test_equal_tools_keep_their_order() -> None:
    count = ranking.AMONG + 5
    assert order(*[(1.0, [0.5])] * count) == list(range(count))
    assert order() == []


def test_tools_ranked_far_below_the_best_get_no_gain() -> None:
    position = ranking.AMONG
    tools = [*[(1.0, [0.5, 0.0])] * position, (0.9, [0.0, 1.0])]
    assert order(*tools, gain=10.0)[-1] == position
