"""Tests when a statement is given up because its server does not answer anybody, with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
import pytest

from toolbelt.settings import pooling

SILENT = psycopg.errors.ConnectionTimeout("timeout")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def statement(rounds: int) -> Generator[int, int, str]:
    for _ in range(rounds):
        yield 1
    return "done"


def run(watch: pooling.Watch, clock: Clock, rounds: int, error: psycopg.Error | None, ready: int = 0) -> Any:
    """Run a statement whose rounds take half of its patience each. Return its result, and the number of connections."""
    connected = []

    def connect() -> None:
        connected.append(clock.now)
        if error is not None:
            raise error

    work = watch.watched(statement(rounds), connect)
    next(work)
    while True:
        clock.now += pooling.PATIENCE_SECONDS / 2
        try:
            work.send(ready)
        except StopIteration as end:
            return end.value, len(connected)


def test_a_quick_statement_opens_no_connection() -> None:
    clock = Clock()
    assert run(pooling.Watch(clock), clock, 1, SILENT) == ("done", 0)


def test_a_slow_statement_goes_on_while_the_server_answers() -> None:
    clock = Clock()
    assert run(pooling.Watch(clock), clock, 9, None) == ("done", 2)


def test_a_server_that_answers_with_a_refusal_answers() -> None:
    clock = Clock()
    result, _ = run(pooling.Watch(clock), clock, 9, psycopg.OperationalError("too many clients"))
    assert result == "done"


def test_a_result_that_arrives_is_taken_without_asking() -> None:
    clock = Clock()
    assert run(pooling.Watch(clock), clock, 9, SILENT, ready=1) == ("done", 0)


def test_a_statement_ends_once_the_server_answers_no_connection() -> None:
    clock = Clock()
    with pytest.raises(psycopg.OperationalError, match="does not answer"):
        run(pooling.Watch(clock), clock, 9, SILENT)
    assert clock.now == 100.0 + pooling.PATIENCE_SECONDS


def test_what_one_thread_found_out_is_known_to_others_for_a_moment() -> None:
    clock = Clock()
    watch = pooling.Watch(clock)
    watch.note(SILENT)
    clock.now += pooling.VALID_SECONDS / 2
    with pytest.raises(psycopg.OperationalError):
        watch.check(lambda: pytest.fail("asked again"))
    clock.now += pooling.VALID_SECONDS
    watch.check(lambda: None)
