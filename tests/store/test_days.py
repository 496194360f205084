"""The day of a time is the one in the installation's time zone, also around clock changes."""

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

# Summer time begins and ends; half an hour of it; none; a clock that is set to the other side of the date line.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
SPRING, AUTUMN = dt.datetime(2026, 3, 27, tzinfo=dt.UTC), dt.datetime(2026, 10, 23, tzinfo=dt.UTC)


def calls_around(moment: dt.datetime) -> list[dt.datetime]:
    moments = [moment + dt.timedelta(minutes=37 * n, microseconds=n) for n in range(240)]
    models.CallRecord.objects.bulk_create(
        models.CallRecord(tool="run", agent="ada", at=at, outcome="ok", duration_ms=1) for at in moments
    )
    return moments


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("moment", [SPRING, AUTUMN])
@pytest.mark.parametrize("bounded", [True, False])
def test_calls_are_of_the_day_on_which_they_were(
    settings: Any, zone: str, moment: dt.datetime, bounded: bool
) -> None:
    settings.TIME_ZONE = zone
    there = zoneinfo.ZoneInfo(zone)
    wanted: dict[dt.date, int] = {}
    for at in calls_around(moment):
        day = at.astimezone(there).date()
        wanted[day] = wanted.get(day, 0) + 1
    period: dict[str, Any] = {"since": moment, "until": moment + dt.timedelta(days=8)} if bounded else {}
    assert {one.day: one.calls for one in call_figures.by_day(**period)} == wanted
    assert [one.day for one in call_figures.durations_by_day(**period)] == sorted(wanted)


def test_sqlite_asks_nobody_for_the_day_in_a_period() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("what SQLite cannot do by itself")
    with CaptureQueriesContext(connection) as asked:
        call_figures.by_day(since=SPRING)
        call_figures.durations_by_day(since=SPRING, until=AUTUMN)
    assert "django_datetime" not in " ".join(one["sql"] for one in asked)


def test_a_period_that_is_too_long_or_none_is_left_to_django() -> None:
    assert type(days.of("at", None)) is not days.Day
    assert type(days.of("at", SPRING - dt.timedelta(days=3000), SPRING)) is not days.Day
    assert type(days.of("at", AUTUMN, SPRING)) is not days.Day
    assert type(days.of("at", SPRING, AUTUMN)) is days.Day


def test_each_change_of_the_clock_is_found_to_the_minute() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    year = (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 12, 31, tzinfo=dt.UTC))
    assert list(days.offsets(berlin, *year)) == [
        (dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC), 60),
        (dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC), 120),
        (year[1], 60),
    ]
