"""Tests that users' answers are deleted after use."""

from __future__ import annotations

import datetime as dt

import pytest

from toolbelt import models
from toolbelt.runtime.records import recordings
from toolbelt.store import clock, open_questions

pytestmark = pytest.mark.django_db


def test_pruning_calls_removes_answers_for_a_process_that_was_killed() -> None:
    for key in ("left behind", "open"):
        open_questions.add(key)
        assert open_questions.answer(key, "an answer")
    old = models.OpenQuestion.objects.filter(key="left behind")
    old.update(at=clock.now() - open_questions.MAX_AGE - dt.timedelta(seconds=1))

    recordings.prune(dt.timedelta(days=30))

    assert open_questions.answers(["left behind", "open"]) == {"open": "an answer"}
