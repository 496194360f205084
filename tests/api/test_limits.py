"""Tests of the request limit of each caller."""

from __future__ import annotations

from toolbelt.api import limits


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_limited_to_the_requests_of_one_minute():
    rates = limits.Rates(Clock())
    assert [rates.take("a", 3) for _ in range(4)] == [0, 0, 0, 20]


def test_the_allowance_is_refilled_evenly():
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


def test_each_caller_has_its_own_limit():
    rates = limits.Rates(Clock())
    assert [rates.take(caller, 1) for caller in ("a", "a", "b")] == [0, 60, 0]


def test_a_lowered_limit_applies_immediately():
    rates = limits.Rates(Clock())
    rates.take("a", 100)
    assert [rates.take("a", 1) for _ in range(2)] == [0, 60]
