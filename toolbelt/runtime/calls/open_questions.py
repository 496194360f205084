"""Questions to users that are open, across the processes of a server."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolbelt.store import open_questions


def add(key: str) -> None:
    """Store a question that this process waits for, so that other processes can answer it."""
    open_questions.add(key)


def answer(key: str, text: str) -> bool:
    """Answer a question of any process; return False if it is not open or was already answered."""
    return open_questions.answer(key, text)


def answers(keys: Collection[str]) -> Mapping[str, str]:
    """Return the answers to these questions, by key: empty if there is none yet, missing if it is closed. One query."""
    return open_questions.answers(keys)


def set_outcome(key: str, text: str) -> bool:
    """Store the outcome of a call for the process that received the answer; return False if it no longer waits."""
    return open_questions.set_outcome(key, text)


def outcome(key: str) -> str | None:
    """Return the outcome of a call: empty as long as it runs, None if the question is closed."""
    return open_questions.outcome(key)


def remove(key: str) -> None:
    """Delete a question and its answer."""
    open_questions.remove(key)
