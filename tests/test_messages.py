"""Tests that the messages of Toolbelt are in plain English."""

from __future__ import annotations

from pathlib import Path

from tests.docs import test_language as documents
from tests.web import test_language as texts

ROOT = Path(__file__).parents[1]
# Django generates these files.
SKIPPED = (ROOT / "toolbelt/migrations",)


def test_messages_use_plain_words() -> None:
    files = (
        file
        for file in sorted((ROOT / "toolbelt").rglob("*.py"))
        if not any(file.is_relative_to(skipped) for skipped in SKIPPED)
    )
    assert [
        f"{file.relative_to(ROOT)}: {match[0]!r} in {text[:80]!r}. Write: {better}."
        for file in files
        for text in texts.in_python(file.read_text())
        if " " in text
        for pattern, better in documents.PHRASES.items()
        if (match := pattern.search(text))
    ] == []
