"""Tests of what counts as a spike of errors."""

from __future__ import annotations

import pytest

from toolbelt.core import error_spikes
from toolbelt.core.error_spikes import Hour


@pytest.mark.parametrize(
    ("hour", "before", "is_spike"),
    [
        pytest.param(Hour(400, 400), [], True, id="a failing server without a history"),
        pytest.param(Hour(19, 19), [], False, id="too few errors"),
        pytest.param(Hour(10_000, 40), [], False, id="a small share of a busy server"),
        pytest.param(Hour(400, 400), [Hour(400, 0)] * 4, True, id="nothing failed before"),
        pytest.param(Hour(400, 400), [Hour(400, 400)] * 4, False, id="it fails at this hour every week"),
        pytest.param(
            Hour(400, 400), [Hour(0, 0), Hour(400, 400)], False, id="weeks without calls say nothing"
        ),
        pytest.param(Hour(1000, 100), [Hour(100, 10)] * 4, False, id="ten times the calls, the same share"),
        pytest.param(Hour(1000, 300), [Hour(1000, 90)] * 4, True, id="three times the share"),
        pytest.param(Hour(60, 60), [Hour(10, 6)] * 4, True, id="everything fails, and far more often"),
    ],
)
def test_a_spike_has_far_more_errors_than_the_same_hour_of_the_weeks_before(
    hour: Hour, before: list[Hour], is_spike: bool
) -> None:
    assert error_spikes.is_spike(hour, before) is is_spike


def test_the_usual_errors_are_the_mean_of_the_weeks_with_calls() -> None:
    assert error_spikes.usual([Hour(10, 2), Hour(0, 0), Hour(10, 4)]) == 3
    assert error_spikes.usual([]) == 0
