"""The order of results: the best first, and after it what fits a clause better than those before."""

from __future__ import annotations

from collections.abc import Sequence

from toolbelt.core.search import ranking


def order(*tools: tuple[float, Sequence[float]], gain: float = 1.0) -> list[int]:
    """Return the order of tools with these scores, which fit the clauses as the numbers say."""
    scores = [score for score, _ in tools]
    return list(ranking.order(scores, [(clauses,) for _, clauses in tools], (gain,)))


def test_of_two_that_fit_the_same_clause_the_second_comes_after_one_that_fits_another() -> None:
    assert order((3.0, [0.9, 0.0]), (2.0, [0.9, 0.0]), (1.5, [0.0, 0.8])) == [0, 2, 1]


def test_without_a_gain_the_scores_decide() -> None:
    assert order((1.5, [0.0, 0.8]), (3.0, [0.9, 0.0]), (2.0, [0.9, 0.0]), gain=0.0) == [1, 2, 0]


def test_the_best_stays_first_however_well_another_fits_a_clause() -> None:
    assert order((3.0, [0.1, 0.1]), (2.9, [0.9, 0.9]), gain=100.0) == [0, 1]


def test_a_clause_that_was_served_gives_nothing_to_those_after() -> None:
    assert order((4.0, [0.9, 0.0]), (1.0, [0.0, 0.8]), (1.1, [0.0, 0.7]), (1.2, [0.5, 0.0]), gain=2.0) == [
        0,
        1,
        3,
        2,
    ]


def test_each_measure_has_a_gain_of_its_own() -> None:
    by_clause = [([0.5], [0.5]), ([0.9], [0.5]), ([0.5], [0.9])]
    assert list(ranking.order([1.0, 0.0, 0.0], by_clause, (1.0, 2.0))) == [0, 2, 1]


def test_equal_tools_keep_their_order_and_none_is_lost() -> None:
    count = ranking.AMONG + 5
    assert order(*[(1.0, [0.5])] * count) == list(range(count))
    assert order() == []


def test_far_behind_the_best_nothing_is_gained() -> None:
    behind = ranking.AMONG
    tools = [*[(1.0, [0.5, 0.0])] * behind, (0.9, [0.0, 1.0])]
    assert order(*tools, gain=10.0)[-1] == behind
