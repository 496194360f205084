"""Tests that call records are stored as they were given, whatever their texts contain."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from toolbelt import models
from toolbelt.core import outcomes
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


@pytest.mark.parametrize("code", outcomes.REFUSALS)
def test_every_refusal_can_be_recorded(code: str) -> None:
    assert stored(outcome=code).outcome == code


LOADED = '{"by_agent":false,"loaded":[["toolkit","desk"]],"loadout":""}'


def test_a_state_of_sessions_is_stored_once_and_kept_as_long_as_calls_name_it() -> None:
    call_records.record_all([record(state=LOADED, session=str(number)) for number in range(3)])
    models.SessionState.objects.update(used=AT)
    call_records.record_all([record(state=""), record()])

    assert call_records.prune(AT) == 0
    [kept] = models.SessionState.objects.all()
    names = models.CallRecord.objects.order_by("id").values_list("state", flat=True)
    assert [*names] == [kept.digest] * 3 + ["", None]
    assert kept.document["loaded"] == [["toolkit", "desk"]]

    call_records.prune(AT + dt.timedelta(days=1))
    assert not models.SessionState.objects.exists()


def test_a_state_that_is_used_again_is_not_pruned() -> None:
    call_records.record_all([record(state=LOADED)])
    models.SessionState.objects.update(used=AT)
    call_records.record_all([record(state=LOADED)])

    call_records.prune(timezone.now() - dt.timedelta(days=2))

    assert models.SessionState.objects.count() == 1
