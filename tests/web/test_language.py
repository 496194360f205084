"""Tests that the dashboard's texts use the words of the glossary, without phrasings that readers stumble over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs import test_language as language

ROOT = Path(__file__).parents[2]
# Words that confused operators, and what to write instead, in addition to the documentation's list.
INSTEAD = {
    r"(?-i:Inherit|Follows? defaults)": "Default, Reset to default: what an operator stored is On, Off or Default",
    r"(?-i:Denied|Dormant|Discoverable)|not granted|on demand": "Off, On request: codes are data",
    r"stop(?:ped)? for everyone|lift the stop": "Block for everyone, Unblock: one name for the emergency stop",
    r"keep (?:it )?off|to look at|look again": "Reject, to review, reload the page: name what the reader does",
    r"(?-i:Make it|Leave as it is|All shown|The whole \w+)": "a verb and its object, Cancel, Bulk actions, Full change",
    r"(?:no|nothing|nobody) \w* ?fits": "No matching tools",
    r"may not do|not yours": "You do not have permission to …: the message addresses the reader",
    r"answers nobody|brought back|bring it back": "is archived, Restore",
    r"no longer stopped|opens? nothing|comes with": "is unblocked, is revoked, uses",
    r"begins? with|in force|at once|read-only for you": "starts with, effective, immediately, view only",
    r"fault is ours|that (?:went wrong|was too often|is too large)|makes no sense": "Too many requests",
}
PHRASES = {
    **language.PHRASES,
    **{re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): better for phrase, better in INSTEAD.items()},
}
FILES = [
    *sorted((ROOT / "templates").rglob("*.html")),
    *sorted((ROOT / "static/js").glob("*.js")),
    *(path for folder in ("web", "admin") for path in sorted((ROOT / "toolbelt" / folder).rglob("*.py"))),
]


def in_template(source: str) -> Iterator[str]:
    """Yield the text between tags, and the strings in attributes and includes that readers see."""
    source = re.sub(r"\{#.*?#\}|<(script|style)\b.*?</\1>", " ", source, flags=re.DOTALL)
    yield from re.findall(
        r'(?:aria-label|title|placeholder|label|hint|words|data-when-\w+)="([^"]*)"', source
    )
    yield " ".join(re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", source, flags=re.DOTALL).split())


def in_script(source: str) -> Iterator[str]:
    """Yield the strings that contain more than one word."""
    for quoted in re.findall(r'"([^"\n]* [^"\n]*)"|`([^`\n]* [^`\n]*)`', source):
        yield "".join(quoted)


def in_python(source: str) -> Iterator[str]:
    """Yield the strings that are not docstrings, and the constant parts of f-strings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


READERS = {".html": in_template, ".js": in_script, ".py": in_python}


def test_texts_use_plain_words() -> None:
    problems = [
        f"{path.relative_to(ROOT)}: {match[0]!r} in "
        f"{text[max(match.start() - 40, 0) : match.end() + 40]!r}. Write: {better}."
        for path in FILES
        for text in READERS[path.suffix](path.read_text())
        for phrase, better in PHRASES.items()
        for match in phrase.finditer(text)
    ]
    assert problems == []
