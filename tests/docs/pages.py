"""The pages of the documentation: their links, anchors and code blocks, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCE = ROOT / "docs/reference"
_WHERE = ("*.md", "docs/**/*.md", "fixtures/**/*.md", "tests/**/*.md")

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PIECE = re.compile(
    r"(?:^<!-- the file (?P<file>\S+) -->\n\n)?"
    rf"{_FENCE.pattern}|^<!-- (?P<key>\w+) is (?P<state>on|off) for (?P<agent>[\w-]+) -->$",
    _FENCE.flags,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the language it names, and its text; of a file (a remark says so), also the file's path."""

    language: str
    text: str
    file: str = ""


class Switched(NamedTuple):
    """A remark (no reader sees it) of what an operator has done on a screen by this place of the page."""

    key: str
    on: bool
    agent: str


def every() -> list[Path]:
    """List all pages that are part of the project."""
    return sorted({page for pattern in _WHERE for page in ROOT.glob(pattern)})


def name(page: Path) -> str:
    """Name a page as its writer does."""
    return page.relative_to(ROOT).as_posix()


def pieces(page: Path) -> Iterator[Block | Switched]:
    """Return the blocks of a page and the remarks between them, in order."""
    for found in _PIECE.finditer(page.read_text(encoding="utf-8")):
        if found["key"]:
            yield Switched(found["key"], found["state"] == "on", found["agent"])
        else:
            yield Block(found["language"], found["text"], found["file"] or "")


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the texts of the page's blocks in these languages."""
    return [one.text for one in pieces(page) if isinstance(one, Block) and one.language in languages]


def writes_files(page: Path) -> bool:
    """Return whether blocks of the page are files: then what it shows works with them."""
    return any(isinstance(one, Block) and one.file for one in pieces(page))


def prose(page: Path) -> str:
    """Return what is not in a block."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """List where the page's links lead."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Name the places in a page that a link can lead to, as GitHub and most renderers do."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.replace(" ", "-") for heading in kept}


def terms(page: Path) -> set[str]:
    """Return everything that the page sets as code, in its prose."""
    return set(re.findall(r"`([^`\n]+)`", prose(page)))
