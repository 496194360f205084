"""Tests that docstrings and comments are statements, and names of tests sentences, in plain English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import test_language as documents
from tests.web import test_language as texts

ROOT = Path(__file__).parents[1]
FOLDERS = ("interop", "scripts", "tests", "toolbelt")
# Django generates these files.
SKIPPED = (ROOT / "toolbelt/migrations",)
# Phrases to avoid, in addition to those of the documentation.
PHRASES = {
    **documents.INSTEAD,
    r"somebody|whoever|nobody|everybody": "the agent, the operator, the caller, no agent",
    r"to put right": "can fix",
    r"shall": "is to, whether to",
    r"nonsense|makes no sense": "invalid values",
    r"(?:what|as) (?:it|they|a \w+|the \w+) c(?:ame|omes?) to": "the result, the outcome",
    r"are the most": "at most … are allowed",
    r"is no (?:list|mapping|object|URI|id)": "is not a list",
    r"behind the page's back": "in the background",
    r"(?:is|are) called so": "has this key",
}
# Common words that these phrases contain in another sense.
ALLOWED = re.compile(r"good practice|\bno look-up|`[^`]*`")
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
        text = ALLOWED.sub(" ", text)
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


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for folder, kinds in {"static": "*.js *.css", "templates": "*.html", "scripts": "*.sh"}.items()
        for kind in kinds.split()
        for path in (ROOT / folder).rglob(kind)
    ),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_comments_of_scripts_styles_and_templates_are_in_plain_english(path: Path) -> None:
    comments_there = re.findall(
        r"(?<!:)//[^\n]*|/\*.*?\*/|\{#.*?#\}|^\s*# [^\n]*", path.read_text(), re.DOTALL | re.MULTILINE
    )
    assert [
        f"{match[0]!r} in {text[:80]!r}. Write: {better}."
        for text in comments_there
        for pattern, better in PATTERNS.items()
        if (match := pattern.search(text))
    ] == []


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
