"""Tests that spikes of errors are found in the records of calls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.reports import error_spikes
from toolbelt.store import clock

pytestmark = pytest.mark.django_db

NIGHT = dt.datetime(2026, 11, 27, 2, 10, tzinfo=dt.UTC)
REFUSED = "MongoServerSelectionError: connection refused 10.0.3.7:27017"
WEEK = dt.timedelta(weeks=1)


@pytest.fixture(autouse=True)
def _in_the_morning() -> Iterator[None]:
    with clock.stopped(dt.datetime(2026, 11, 27, 8, 30, tzinfo=dt.UTC)):
        yield


def fail(times: int, *, at: dt.datetime = NIGHT, seconds: int = 9, **columns: Any) -> None:
    fields = {"agent": "analyst", "tool": "mongodb__aggregate", "plugin": "mongodb", "duration_ms": 120}
    fields |= {"outcome": "tool-failed", "error": REFUSED, **columns}
    models.CallRecord.objects.bulk_create(
        models.CallRecord(at=at + dt.timedelta(seconds=seconds * number), **fields) for number in range(times)
    )


def test_a_night_of_failures_is_one_spike_with_its_agent_and_message() -> None:
    fail(400)
    [spike] = error_spikes.load()
    assert (spike.plugin, spike.errors, spike.usual) == ("mongodb", 400, 0)
    assert (spike.first, spike.last) == (NIGHT, NIGHT + dt.timedelta(seconds=9 * 399))
    assert [(kind.agent, kind.tool, kind.error, kind.count) for kind in spike.kinds] == [
        ("analyst", "mongodb__aggregate", REFUSED, 400)
    ]


def test_what_fails_at_the_same_hour_of_every_week_is_no_spike() -> None:
    fail(400)
    fail(400, at=NIGHT - WEEK)
    assert error_spikes.load() == ()


def test_failures_at_another_hour_of_the_week_before_are_not_what_is_usual() -> None:
    fail(400)
    fail(400, at=NIGHT - WEEK - dt.timedelta(hours=3))
    fail(400, at=NIGHT - dt.timedelta(days=2))
    assert [spike.errors for spike in error_spikes.load()] == [400]


def test_a_spike_that_is_over_for_a_day_is_not_reported() -> None:
    fail(400, at=NIGHT - dt.timedelta(days=1))
    assert error_spikes.load() == ()


def test_plugins_are_judged_separately_and_refusals_count_as_errors() -> None:
    fail(30, plugin="", tool="no_such_tool", outcome="unknown-tool", error="There is no such tool.")
    fail(50)
    fail(15, plugin="slack", tool="slack__post")
    fail(500, plugin="files", tool="files__read", outcome="ok", error="")
    fail(500, plugin="files", tool="files__read", outcome="cancelled", error="")
    assert [(spike.plugin, spike.errors) for spike in error_spikes.load()] == [("mongodb", 50), ("", 30)]


def test_a_calm_day_takes_one_query_and_a_spike_three() -> None:
    fail(10)
    assert dashboard.count_queries(error_spikes.load) == 1
    fail(400)
    fail(400, plugin="slack", tool="slack__post")
    assert dashboard.count_queries(error_spikes.load) == 3
