"""Tests that calls are summarized by tool and by day."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from toolbelt import models
from toolbelt.store import call_figures

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)


def call(tool: str = "run", *, at: dt.datetime = NOON, agent: str = "ada", **columns: Any) -> None:
    fields = {"outcome": "ok", "duration_ms": 10, **columns}
    models.CallRecord.objects.create(tool=tool, agent=agent, at=at, **fields)


def test_calls_are_counted_by_tool_most_called_first() -> None:
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
def test_durations_are_percentiles_50_and_95(durations: list[int], median: int, slow: int) -> None:
    for duration in reversed(durations):
        call(duration_ms=duration)
    call("other", duration_ms=5000)
    figures = next(figures for figures in call_figures.by_tool() if figures.tool == "run")
    assert (figures.median, figures.slow) == (median, slow)


def test_refused_calls_do_not_count_toward_durations() -> None:
    call(duration_ms=100)
    for _ in range(9):
        call(duration_ms=0, outcome="tool-denied")
    call("refused", duration_ms=0, outcome="tool-denied")
    refused, run = sorted(call_figures.by_tool(), key=lambda figures: figures.tool)
    assert (run.median, run.slow) == (100, 100)
    assert (refused.median, refused.slow) == (None, None)


def test_durations_are_computed_only_for_the_requested_number_of_tools() -> None:
    for tool, count in (("often", 3), ("rare", 1), ("now and then", 2)):
        for _ in range(count):
            call(tool, duration_ms=100)
    figures_by_tool = {
        figures.tool: (figures.calls, figures.median, figures.slow)
        for figures in call_figures.by_tool(timed=2)
    }
    assert figures_by_tool == {"often": (3, 100, 100), "now and then": (2, 100, 100), "rare": (1, None, None)}


def test_days_use_the_configured_time_zone_and_omit_empty_days(settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    call(at=NOON)
    call(at=NOON + dt.timedelta(hours=11, minutes=59), outcome="timed-out")
    call(at=NOON + dt.timedelta(days=2), outcome="invalid-arguments")
    assert [
        (figures.day.day, figures.calls, figures.refused, figures.failed) for figures in call_figures.by_day()
    ] == [
        (10, 2, 0, 1),
        (12, 1, 1, 0),
    ]


def test_figures_can_be_filtered() -> None:
    call("run", agent="ada")
    call("run", agent="bob", outcome="tool-failed")
    call("sit", agent="ada", at=NOON - dt.timedelta(days=3))
    assert [figures.calls for figures in call_figures.by_tool(agent="bob")] == [1]
    assert [figures.tool for figures in call_figures.by_tool(since=NOON)] == ["run"]
    assert [figures.tool for figures in call_figures.by_tool(until=NOON)] == ["sit"]
    assert [figures.calls for figures in call_figures.by_tool(tool="run", outcome="ok")] == [1]
    assert len(call_figures.by_day(agent="ada")) == 2
    assert call_figures.called(since=NOON) == {("ada", "run"), ("bob", "run")}
    assert call_figures.called(agent="ada") == {("ada", "run"), ("ada", "sit")}
    assert call_figures.logged_values("agent") == ["ada", "bob"]
