"""Tests of the pause before a server is contacted again."""

from __future__ import annotations

from toolbelt.plugins.upstream import backoff, limits


def test_a_pause_has_its_maximum_after_any_number_of_failures() -> None:
    pause = backoff.Backoff(limits.Limits(first_pause=1.0, longest_pause=60.0))
    for _ in range(2_000):
        pause.failed()
    assert 0 < pause.left() <= 60.0
