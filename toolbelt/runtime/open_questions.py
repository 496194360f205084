"""Questions to users that are open, across the processes of a server."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolbelt.store import open_questions


def add(key: str) -> None:
    """Let other processes know of a question that this one waits with."""
    open_questions.add(key)


def answer(key: str, text: str) -> bool:
    """Answer the question, wherever it waits; return False if it is not open or was answered already."""
    return open_questions.answer(key, text)


def answers(keys: Collection[str]) -> Mapping[str, str]:
    """Return the answers to these questions, by key: empty if there is none yet, missing if it is closed. One query."""
    return open_questions.answers(keys)


def set_outcome(key: str, text: str) -> bool:
    """Write what a call came to, for the process that got the answer; return False if that waits no longer."""
    return open_questions.set_outcome(key, text)


def outcome(key: str) -> str | None:
    """Return what a call came to: empty as long as it runs, None if the question is closed."""
    return open_questions.outcome(key)


def remove(key: str) -> None:
    """Forget a question and its answer."""
    open_questions.remove(key)
