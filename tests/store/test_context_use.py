"""Tests that tokens are summed by agent and day."""

from __future__ import annotations

import datetime as dt

import pytest

from toolbelt.store import clock, context_use
from toolbelt.store.context_use import Total, Use

pytestmark = pytest.mark.django_db
DAY = dt.date(2026, 3, 1)
NEXT = dt.date(2026, 3, 2)


def test_context_use_is_summed_by_agent_and_day() -> None:
    context_use.add_all([Use("ada", DAY, 1, 10, 100), Use("ada", DAY, 2, 20, 200)])
    context_use.add_all([Use("ada", DAY, 1, 5, 0), Use("ada", NEXT, 1, 1, 2), Use("bob", DAY, 1, 7, 9)])

    assert context_use.by_day(since=DAY, agent="ada") == [
        Use("ada", DAY, 4, 35, 300),
        Use("ada", NEXT, 1, 1, 2),
    ]
    assert context_use.total(since=DAY) == Total(answers=6, sent=43, allowed=311)
    assert context_use.total(since=NEXT) == Total(answers=1, sent=1, allowed=2)
    assert context_use.total(since=DAY, agent="bob") == Total(answers=1, sent=7, allowed=9)


def test_expired_sums_are_deleted_when_a_new_day_starts() -> None:
    with clock.stopped(dt.datetime(2026, 3, 1, tzinfo=dt.UTC)):
        context_use.add_all([Use("ada", DAY, 1, 10, 100)])
    with clock.stopped(dt.datetime(2026, 3, 2, tzinfo=dt.UTC) + context_use.MAX_AGE):
        context_use.add_all([Use("bob", NEXT, 1, 1, 1)])

    assert context_use.by_day(since=DAY, agent="ada") == []
