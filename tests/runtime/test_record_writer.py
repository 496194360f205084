"""Tests that records of calls which are written behind the calls are written, all of them, whatever one of them is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from toolbelt import models
from toolbelt.runtime import record_writer
from toolbelt.store import calls

# The writer has a thread of its own.
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
    monkeypatch.setattr(record_writer, "PAUSE", 0.05)
    found = record_writer.Writer()
    found.start()
    yield found
    found.stop()


def sessions() -> set[str]:
    return set(models.CallRecord.objects.values_list("session", flat=True))


def test_what_was_taken_is_written_when_it_is_told_to_stop(writer: record_writer.Writer) -> None:
    assert all(writer.take(record(number)) for number in range(1200))

    writer.stop()

    assert len(sessions()) == 1200


def test_a_writer_that_was_stopped_or_never_started_takes_nothing(writer: record_writer.Writer) -> None:
    writer.stop()

    assert not writer.take(record())
    assert not record_writer.Writer().take(record())


def test_a_writer_with_too_much_to_do_leaves_it_to_the_caller(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    write = calls.record_all
    monkeypatch.setattr(calls, "record_all", lambda records: go_on.wait(20) and write(records))

    taken = sum(
        writer.take(record()) for _ in range(record_writer.MAX_WAITING + record_writer.MAX_AT_ONCE + 1)
    )

    assert record_writer.MAX_WAITING <= taken <= record_writer.MAX_WAITING + record_writer.MAX_AT_ONCE
    go_on.set()


def test_a_writer_says_that_it_has_no_room_before_it_takes_no_more(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    write = calls.record_all
    monkeypatch.setattr(calls, "record_all", lambda records: go_on.wait(20) and write(records))
    assert writer.has_room()

    try:
        while writer.has_room():
            assert writer.take(record())
        assert all(writer.take(record()) for _ in range(record_writer.MARGIN))
    finally:
        go_on.set()


def test_a_writer_that_never_started_has_no_room() -> None:
    assert not record_writer.Writer().has_room()


def test_a_writer_that_is_flushed_has_written_what_it_took_before(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "DELAY", 60.0)

    for number in range(3):
        writer.take(record(number))
        assert writer.flush(20)
        assert len(sessions()) == number + 1


def test_a_flush_does_not_hurry_what_comes_after_it(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "DELAY", 60.0)
    assert writer.flush(20)
    written: list[int] = []
    write = calls.record_all

    def count(records: Any) -> int:
        written.append(len(records))
        return write(records)

    monkeypatch.setattr(calls, "record_all", count)

    assert all(writer.take(record(number)) for number in range(5))
    assert writer.flush(20)

    assert written == [5]


def test_a_flush_while_the_database_cannot_be_written_to_ends_without_it(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(records: Any) -> int:
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(calls, "record_all", refuse)
        writer.take(record())
        assert not writer.flush(0.01)
    assert writer.flush(20)
    assert sessions() == {"s0"}


def test_a_writer_that_never_started_flushes_nothing() -> None:
    assert not record_writer.Writer().flush(0)


def test_records_wait_while_the_database_cannot_be_written_to(
    writer: record_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, tried = calls.record_all, threading.Event()

    def refuse(records: Any) -> int:
        tried.set()
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(calls, "record_all", refuse)
        writer.take(record(1))
        assert tried.wait(20)
        writer.take(record(2))
    assert calls.record_all is write
    writer.stop()

    assert sessions() == {"s1", "s2"}


def test_one_record_that_no_database_takes_is_lost_alone(writer: record_writer.Writer) -> None:
    for one in (record(1), record(2, duration_ms="no number"), record(3)):
        writer.take(one)

    writer.stop()

    assert sessions() == {"s1", "s3"}
