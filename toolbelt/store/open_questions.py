"""Questions that wait for an answer: the process that gets the answer writes it, the one that waits reads it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from toolbelt import models
from toolbelt.store import clock

# No question is open for longer than this; older ones were left by a process that was killed.
MAX_AGE = dt.timedelta(hours=1)


def add(key: str) -> None:
    """Add a question without an answer."""
    prune()
    models.OpenQuestion.objects.create(key=key, at=clock.now())


def prune() -> None:
    """Delete questions, with their answers, for which no process waits any more."""
    models.OpenQuestion.objects.filter(at__lt=clock.now() - MAX_AGE).delete()


def answer(key: str, text: str) -> bool:
    """Answer a question; return False, and change nothing, if it is not open or has an answer."""
    return bool(models.OpenQuestion.objects.filter(key=key, answer="").update(answer=text))


def answers(keys: Collection[str]) -> Mapping[str, str]:
    """Return the answers to these questions, by key: empty if there is none yet, missing if it is closed. One query."""
    return dict(models.OpenQuestion.objects.filter(key__in=keys).values_list("key", "answer"))


def set_outcome(key: str, text: str) -> bool:
    """Store the outcome of a call. Return False if no process waits for it."""
    return bool(models.OpenQuestion.objects.filter(key=key).update(outcome=text))


def outcome(key: str) -> str | None:
    """Return the outcome of a call: empty as long as it runs, None if the question is closed."""
    return models.OpenQuestion.objects.filter(key=key).values_list("outcome", flat=True).first()


def remove(key: str) -> None:
    """Remove a question with all that is stored of it."""
    models.OpenQuestion.objects.filter(key=key).delete()
