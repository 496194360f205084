"""Calls are summed up by tool and by day."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from toolbelt import models
from toolbelt.store import call_figures

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)


def call(tool: str = "run", *, at: dt.datetime = NOON, agent: str = "ada", **columns: Any) -> None:
    told = {"outcome": "ok", "duration_ms": 10, **columns}
    models.CallRecord.objects.create(tool=tool, agent=agent, at=at, **told)


def test_calls_are_counted_by_tool_the_most_called_first() -> None:
    call("rare")
    for outcome in ("ok", "tool-denied", "unknown-tool", "tool-failed", "cancelled"):
        call("often", outcome=outcome)
    often, rare = call_figures.by_tool()
    assert (often.tool, often.calls, often.refused, often.failed, often.errors) == ("often", 5, 2, 1, 3)
    assert (rare.tool, rare.calls, rare.errors, rare.last) == ("rare", 1, 0, NOON)


@pytest.mark.parametrize(
    ("durations", "median", "slow"),
    [
        ([7], 7, 7),
        ([5, 9], 5, 9),
        ([1, 2, 3], 2, 3),
        (list(range(1, 21)), 10, 19),
        (list(range(1, 101)), 50, 95),
        ([4, 4, 4, 4], 4, 4),
    ],
)
def test_durations_are_those_that_so_many_of_a_hundred_do_not_pass(
    durations: list[int], median: int, slow: int
) -> None:
    for duration in reversed(durations):
        call(duration_ms=duration)
    call("other", duration_ms=5000)
    one = next(one for one in call_figures.by_tool() if one.tool == "run")
    assert (one.median, one.slow) == (median, slow)


def test_what_never_ran_takes_no_time_and_flatters_nobody() -> None:
    call(duration_ms=100)
    for _ in range(9):
        call(duration_ms=0, outcome="tool-denied")
    call("refused", duration_ms=0, outcome="tool-denied")
    refused, run = sorted(call_figures.by_tool(), key=lambda one: one.tool)
    assert (run.median, run.slow) == (100, 100)
    assert (refused.median, refused.slow) == (None, None)


def test_how_long_calls_took_is_worked_out_for_as_many_tools_as_are_asked_for() -> None:
    for tool, many in (("often", 3), ("rare", 1), ("now and then", 2)):
        for _ in range(many):
            call(tool, duration_ms=100)
    found = {one.tool: (one.calls, one.median, one.slow) for one in call_figures.by_tool(timed=2)}
    assert found == {"often": (3, 100, 100), "now and then": (2, 100, 100), "rare": (1, None, None)}


def test_days_are_those_of_the_installation_and_empty_ones_are_left_out(settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    call(at=NOON)
    call(at=NOON + dt.timedelta(hours=11, minutes=59), outcome="timed-out")
    call(at=NOON + dt.timedelta(days=2), outcome="invalid-arguments")
    assert [(one.day.day, one.calls, one.refused, one.failed) for one in call_figures.by_day()] == [
        (10, 2, 0, 1),
        (12, 1, 1, 0),
    ]


def test_they_are_narrowed_by_all_that_is_asked_for() -> None:
    call("run", agent="ada")
    call("run", agent="bob", outcome="tool-failed")
    call("sit", agent="ada", at=NOON - dt.timedelta(days=3))
    assert [one.calls for one in call_figures.by_tool(agent="bob")] == [1]
    assert [one.tool for one in call_figures.by_tool(since=NOON)] == ["run"]
    assert [one.tool for one in call_figures.by_tool(until=NOON)] == ["sit"]
    assert [one.calls for one in call_figures.by_tool(tool="run", outcome="ok")] == [1]
    assert len(call_figures.by_day(agent="ada")) == 2
    assert call_figures.called(since=NOON) == {("ada", "run"), ("bob", "run")}
    assert call_figures.called(agent="ada") == {("ada", "run"), ("ada", "sit")}
    assert call_figures.logged_values("agent") == ["ada", "bob"]
