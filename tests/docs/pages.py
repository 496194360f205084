"""The pages of the documentation: their links, anchors and code blocks, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCE = ROOT / "docs/reference"
_PATTERNS = ("*.md", "docs/**/*.md", "fixtures/**/*.md", "tests/**/*.md")

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PIECE = re.compile(
    r"(?:^<!-- the file (?P<file>\S+) -->\n\n)?"
    rf"{_FENCE.pattern}|^<!-- (?P<key>\w+) is (?P<state>on|off) for (?P<agent>[\w-]+) -->$",
    _FENCE.flags,
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language and text, and the path if a comment says that the block is a file."""

    language: str
    text: str
    file: str = ""


class Switch(NamedTuple):
    """An invisible comment that records a switch which the reader has set in the dashboard at this point."""

    key: str
    on: bool
    agent: str


def every() -> list[Path]:
    """Return all pages of the project, sorted."""
    return sorted({page for pattern in _PATTERNS for page in ROOT.glob(pattern)})


def name(page: Path) -> str:
    """Return the page's path relative to the project."""
    return page.relative_to(ROOT).as_posix()


def pieces(page: Path) -> Iterator[Block | Switch]:
    """Yield the blocks of a page and the comments between them, in order."""
    for match in _PIECE.finditer(page.read_text(encoding="utf-8")):
        if match["key"]:
            yield Switch(match["key"], match["state"] == "on", match["agent"])
        else:
            yield Block(match["language"], match["text"], match["file"] or "")


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the texts of the page's blocks in these languages."""
    return [piece.text for piece in pieces(page) if isinstance(piece, Block) and piece.language in languages]


def writes_files(page: Path) -> bool:
    """Return whether blocks of the page are files, which its commands need."""
    return any(isinstance(piece, Block) and piece.file for piece in pieces(page))


def prose(page: Path) -> str:
    """Return the text outside of blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Return the targets of the page's links."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub and most renderers name them."""
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.replace(" ", "-") for heading in slugs}


def terms(page: Path) -> set[str]:
    """Return everything that the page's prose formats as code."""
    return set(re.findall(r"`([^`\n]+)`", prose(page)))
