"""Tests that background work goes on after an error."""

from __future__ import annotations

import threading

import pytest

from toolbelt.control import repeating

pytestmark = pytest.mark.django_db


def test_work_that_fails_is_logged_and_done_again(caplog: pytest.LogCaptureFixture) -> None:
    done, times = threading.Event(), []

    def work() -> float:
        times.append(1)
        if len(times) == 1:
            raise ValueError("once")
        done.set()
        return 3600

    thread = repeating.Repeating("work", work, 0.01, "work not done")
    thread.start()
    assert done.wait(10)
    thread.stop()
    assert len(times) == 2
    assert "work not done" in caplog.text
