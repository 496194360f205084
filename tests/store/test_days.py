"""Tests that the day of a time is that of the configured time zone, also around clock changes."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt import models
from toolbelt.store import call_figures, days

pytestmark = pytest.mark.django_db

# Zones with summer time in both hemispheres, with half an hour of it, with an odd offset, and UTC.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
SPRING, AUTUMN = dt.datetime(2026, 3, 27, tzinfo=dt.UTC), dt.datetime(2026, 10, 23, tzinfo=dt.UTC)


def calls_around(moment: dt.datetime) -> list[dt.datetime]:
    times = [moment + dt.timedelta(minutes=37 * n, microseconds=n) for n in range(240)]
    models.CallRecord.objects.bulk_create(
        models.CallRecord(tool="run", agent="ada", at=at, outcome="ok", duration_ms=1) for at in times
    )
    return times


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("moment", [SPRING, AUTUMN])
@pytest.mark.parametrize("bounded", [True, False])
def test_calls_are_counted_on_their_local_day(
    settings: Any, zone: str, moment: dt.datetime, bounded: bool
) -> None:
    settings.TIME_ZONE = zone
    zone_info = zoneinfo.ZoneInfo(zone)
    expected: dict[dt.date, int] = {}
    for at in calls_around(moment):
        day = at.astimezone(zone_info).date()
        expected[day] = expected.get(day, 0) + 1
    period: dict[str, Any] = {"since": moment, "until": moment + dt.timedelta(days=8)} if bounded else {}
    assert {day.day: day.calls for day in call_figures.by_day(**period)} == expected
    assert [day.day for day in call_figures.durations_by_day(**period)] == sorted(expected)


def test_sqlite_computes_days_of_a_period_without_python_functions() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite needs Python functions for this")
    with CaptureQueriesContext(connection) as queries:
        call_figures.by_day(since=SPRING)
        call_figures.durations_by_day(since=SPRING, until=AUTUMN)
    assert "django_datetime" not in " ".join(query["sql"] for query in queries)


def test_long_open_or_empty_periods_use_djangos_own_expression() -> None:
    assert type(days.of("at", None)) is not days.Day
    assert type(days.of("at", SPRING - dt.timedelta(days=3000), SPRING)) is not days.Day
    assert type(days.of("at", AUTUMN, SPRING)) is not days.Day
    assert type(days.of("at", SPRING, AUTUMN)) is days.Day


def test_clock_changes_are_found_to_the_minute() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    year = (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 12, 31, tzinfo=dt.UTC))
    assert list(days.offsets(berlin, *year)) == [
        (dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC), 60),
        (dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC), 120),
        (year[1], 60),
    ]
