"""Tests that call records are stored as they were given, whatever their texts contain."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from toolbelt import models
from toolbelt.store import call_records

pytestmark = pytest.mark.django_db

AT = dt.datetime(2026, 3, 1, 12, 30, 15, 123456, dt.UTC)


def record(**fields: Any) -> dict[str, Any]:
    return {"agent": "ada", "tool": "kb__search", "outcome": "ok", "duration_ms": 7, **fields}


def stored(**fields: Any) -> models.CallRecord:
    assert call_records.record_all([record(**fields)]) == 1
    return models.CallRecord.objects.get()


def test_a_record_is_read_as_it_was_written() -> None:
    given: dict[str, Any] = {
        "at": AT,
        "session": "s1",
        "revision": 12,
        "call_id": "c" * 32,
        "report_by": AT + dt.timedelta(minutes=1),
        "arguments": {"a": [1, 2.5, "x", None]},
    }
    row = stored(**given)
    assert {name: getattr(row, name) for name in given} == given


def test_an_absent_column_has_its_default() -> None:
    before = timezone.now()
    row = stored()
    assert before <= row.at <= timezone.now()
    assert (row.session, row.error, row.result_bytes) == ("", "", 0)
    assert (row.call_id, row.report_by, row.revision, row.arguments) == (None, None, None, None)


@pytest.mark.parametrize("arguments", [{}, [], "a text", 5, True])
def test_arguments_can_be_any_json(arguments: Any) -> None:
    assert stored(arguments=arguments).arguments == arguments


@pytest.mark.parametrize(
    ("text", "expected"), [("x" * 900, "x" * 500), ("é" * 900, "é" * 500), ("a\0b", "a�b")]
)
def test_a_text_is_truncated_and_cleaned_to_fit_its_column(text: str, expected: str) -> None:
    assert stored(error=text).error == expected


def test_many_records_are_stored_in_order() -> None:
    assert call_records.record_all(record(session=str(number)) for number in range(700)) == 700
    rows = models.CallRecord.objects.order_by("id").values_list("session", flat=True)
    assert list(rows) == [str(number) for number in range(700)]


@pytest.mark.django_db(transaction=True)
def test_records_are_stored_together_or_not_at_all() -> None:
    with pytest.raises(IntegrityError):
        call_records.record_all([record(), record(outcome="no such outcome")])
    assert not models.CallRecord.objects.exists()
    assert connection.is_usable()


def test_recording_an_empty_list_stores_nothing() -> None:
    assert call_records.record_all([]) == 0
