"""Tests that docstrings and comments are statements, and names of tests sentences, in plain English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("interop", "scripts", "tests", "toolbelt")
# Django generates these files.
SKIPPED = (ROOT / "toolbelt/migrations",)
PHRASES = {
    r"somebody|whoever|nobody|everybody": "the agent, the operator, the caller, no agent",
    r"anew": "again",
    r"(?:is|are|was|were) told": "receives, is notified, learns",
    r"to be had|can be had": "available",
    r"to put right": "can fix",
    r"parted by": "separated by",
    r"went well": "succeeded",
    r"as it was then": "at that time",
}
PATTERNS = {re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): better for phrase, better in PHRASES.items()}
BEGINNINGS = ("Give what", "Give the", "Say ", "Says ", "Tell ")
# Parsing every file takes seconds, and most contain no suspect phrase.
SUSPECT = re.compile(
    rf"\b(?:{'|'.join(PHRASES)})\b|\"\"\"(?:{'|'.join(BEGINNINGS)})|\"\"\"[^\"]*\?",
    re.IGNORECASE,
)


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module and of everything in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def comments(source: str) -> Iterator[str]:
    """Yield the comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def problems(source: str) -> Iterator[str]:
    """Yield each problem, with its text."""
    if not SUSPECT.search(source):
        return
    for text in (*docstrings(source), *comments(source)):
        for pattern, better in PATTERNS.items():
            if match := pattern.search(text):
                yield f"{match[0]!r} in {text[:80]!r}. Write: {better}."
    for text in docstrings(source):
        if text.startswith(BEGINNINGS):
            yield f"{text[:80]!r} does not say what the function returns. Write: Return …"
        if re.search(r"[^`'\"]\?(?:\s|$)", text.partition("\n\n")[0]):
            yield f"{text[:80]!r} asks. State what the code does."


# Words that make the name of a test a riddle.
RIDDLES = re.compile(
    r"\bdef (test_(?:\w*_)?"
    r"(?:told|said|nobody|somebody|everybody|whoever|anew|in_vain|there_is_not|to_be_had)(?:_\w*)?)\("
)


def test_names_of_tests_are_in_plain_words() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [(file.name, name) for file in files for name in RIDDLES.findall(file.read_text())] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_comments_are_in_plain_english(folder: str) -> None:
    files = (
        file
        for file in sorted((ROOT / folder).rglob("*.py"))
        if not any(file.is_relative_to(skipped) for skipped in SKIPPED)
    )
    assert [
        f"{file.relative_to(ROOT)}: {text}" for file in files for text in problems(file.read_text())
    ] == []
