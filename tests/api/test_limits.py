"""Each caller has its own request limit."""

from __future__ import annotations

from toolbelt.api import limits


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_may_come_at_once_and_no_more():
    rates = limits.Rates(Clock())
    assert [rates.take("a", 3) for _ in range(4)] == [0, 0, 0, 20]


def test_what_was_taken_comes_back_evenly():
    clock = Clock()
    rates = limits.Rates(clock)
    for _ in range(3):
        rates.take("a", 3)
    clock.now = 19.9
    assert 0 < rates.take("a", 3) < 0.2
    clock.now = 20.0
    assert rates.take("a", 3) == 0
    clock.now = 10_000.0
    assert [rates.take("a", 3) for _ in range(4)][-1] == 20


def test_callers_have_buckets_of_their_own():
    rates = limits.Rates(Clock())
    assert [rates.take(caller, 1) for caller in ("a", "a", "b")] == [0, 60, 0]


def test_a_limit_that_was_lowered_counts_at_once():
    rates = limits.Rates(Clock())
    rates.take("a", 100)
    assert [rates.take("a", 1) for _ in range(2)] == [0, 60]
