"""Tests that call records written in the background are all written, even if one of them is invalid."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from toolbelt import models
from toolbelt.runtime.records import record_writer
from toolbelt.store import call_records

# The writer has its own thread.
pytestmark = pytest.mark.django_db(transaction=True)


def record(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "at": timezone.now(),
        "agent": "ada",
        "session": f"s{number}",
        "request_id": "",
        "tool": "kb__search",
        "plugin": "kb",
        "outcome": "ok",
        "error": "",
        "duration_ms": 1,
        "arguments_bytes": 2,
        "result_bytes": 3,
        "arguments": None,
        **fields,
    }


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[record_writer.Writer]:
    monkeypatch.setattr(record_writer, "RETRY_SECONDS", 0.05)
    writer = record_writer.Writer()
    writer.start()
    yield writer
    writer.stop()


def sessions() -> set[str]:
    return set(models.CallRecord.objects.values_list("session", flat=True))


def test_stopping_the_writer_writes_all_accepted_records(writer: record_writer.Writer) -> None:
    assert all(writer.enqueue(record(number)) for number in range(1200))

    writer.stop()

    assert len(sessions()) == 1200


def test_a_stopped_or_unstarted_writer_accepts_no_records(writer: record_writer.Writer) -> None:
    writer.stop()

    assert not writer.enqueue(record())
    assert not record_writer.Writer().enqueue(record())


def test_a_full_writer_refuses_records(writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    write = call_records.record_all
    monkeypatch.setattr(call_records, "record_all", lambda records: go_on.wait(20) and write(records))

    accepted = sum(
        writer.enqueue(record()) for _ in range(record_writer.MAX_WAITING + record_writer.MAX_BATCH_SIZE + 1)
    )

    assert record_writer.MAX_WAITING <= accepted <= record_writer.MAX_WAITING + record_writer.MAX_BATCH_SIZE
    go_on.set()


def test_a_writer_without_room_still_accepts_a_margin_of_records(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    write = call_records.record_all
    monkeypatch.setattr(call_records, "record_all", lambda records: go_on.wait(20) and write(records))
    assert writer.has_room()

    try:
        while writer.has_room():
            assert writer.enqueue(record())
        assert all(writer.enqueue(record()) for _ in range(record_writer.MARGIN))
    finally:
        go_on.set()


def test_an_unstarted_writer_has_no_room() -> None:
    assert not record_writer.Writer().has_room()


def test_a_flush_writes_all_earlier_records(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "DELAY", 60.0)

    for number in range(3):
        writer.enqueue(record(number))
        assert writer.flush(20)
        assert len(sessions()) == number + 1


def test_records_after_a_flush_are_written_in_one_batch(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "DELAY", 60.0)
    assert writer.flush(20)
    written: list[int] = []
    write = call_records.record_all

    def count(records: Any) -> int:
        written.append(len(records))
        return write(records)

    monkeypatch.setattr(call_records, "record_all", count)

    assert all(writer.enqueue(record(number)) for number in range(5))
    assert writer.flush(20)

    assert written == [5]


def test_a_flush_fails_while_the_database_is_locked(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(records: Any) -> int:
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(call_records, "record_all", refuse)
        writer.enqueue(record())
        assert not writer.flush(0.01)
    assert writer.flush(20)
    assert sessions() == {"s0"}


def test_flushing_an_unstarted_writer_fails() -> None:
    assert not record_writer.Writer().flush(0)


def test_records_are_kept_while_the_database_is_locked(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, tried = call_records.record_all, threading.Event()

    def refuse(records: Any) -> int:
        tried.set()
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(call_records, "record_all", refuse)
        writer.enqueue(record(1))
        assert tried.wait(20)
        writer.enqueue(record(2))
    assert call_records.record_all is write
    writer.stop()

    assert sessions() == {"s1", "s2"}


def test_an_invalid_record_does_not_affect_the_others(writer: record_writer.Writer) -> None:
    for entry in (record(1), record(2, duration_ms="no number"), record(3)):
        writer.enqueue(entry)

    writer.stop()

    assert sessions() == {"s1", "s3"}
