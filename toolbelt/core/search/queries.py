"""Queries: their significant words, as a whole and by clause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolbelt.core.search import words

# A model may paste a page as the query; this much of it is enough.
MAX_CHARACTERS = 8000
MAX_CLAUSES = 24
_CLAUSE = re.compile(
    r"[.?!;:\n]+\s+|[.?!;\n]+|,\s+|\b(?:and|then|also|as well as|plus|but|so)\b|[。？！；，、]"
)

# What may be a path or an address.
_CHUNK = re.compile(r"[^\s\"'`()<>,;]+")
_SLASH = re.compile(r"[\\/]+")
# The kind of a file says more about the tool than its folders do.
_KINDS = {
    **dict.fromkeys(("bmp", "gif", "jpeg", "jpg", "png", "svg"), "image"),
    **dict.fromkeys(("json", "csv", "pdf", "log", "sql", "xml", "yaml"), ""),
    **dict.fromkeys(("doc", "docx"), "word document"),
    **dict.fromkeys(("ppt", "pptx"), "presentation powerpoint"),
    **dict.fromkeys(("xls", "xlsx"), "excel"),
    **dict.fromkeys(("mov", "mp4"), "video"),
    **dict.fromkeys(("mp3", "wav"), "audio"),
    "bib": "bibliography",
    "html": "web page",
    "ipynb": "notebook",
    "md": "markdown",
    "py": "python code",
    "ts": "code",
    "txt": "text",
    "yml": "yaml",
    "zip": "archive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The significant words of a query.

    ``words`` is stem → the word as it was typed. ``clauses`` are its parts: each has the stems and the words in order.
    ``text`` is the query as it was typed, without the paths of files.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    clauses: Sequence[Clause] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """The significant words of a part of a query: as typed, and stemmed."""

    typed: tuple[str, ...]
    stems: tuple[str, ...]


def _plain(text: str) -> str:
    """Return the text with the names and kinds of files instead of their paths, and hosts instead of addresses."""
    return _CHUNK.sub(_of_chunk, text)


def _of_chunk(match: re.Match[str]) -> str:
    chunk = match[0].rstrip(".:!?")
    end = match[0][len(chunk) :]
    parts = _SLASH.split(chunk)
    if parts[0].lower() in ("http:", "https:") and len(parts) > 1:
        host = parts[1].partition(":")[0].removeprefix("www.")
        return f"url {(host.rpartition('.')[0] or host).replace('.', ' ')}{end}"
    name, _, ending = parts[-1].rpartition(".")
    kind = _KINDS.get(ending.lower()) if name and "@" not in chunk else None
    return match[0] if kind is None else f"{name} {kind or ending} file{end}"


def clause_texts(text: str) -> list[str]:
    """Return the parts of a query that have at least two words, as they were typed."""
    return [clause.strip() for clause in _CLAUSE.split(text) if len(clause.split()) > 1]


def parse(text: str) -> Query:
    """Return the significant words of a query; all words if none is significant."""
    text = _plain(text[:MAX_CHARACTERS])
    clause_words: list[list[str]] = []
    for clause_text in _CLAUSE.split(text):
        significant = [word for word in words.words_of(clause_text) if word not in words.STOP]
        # A single word is part of what came before it: "red, green and blue".
        if clause_words and (
            len(significant) < 2 or len(clause_words[-1]) < 2 or len(clause_words) == MAX_CLAUSES
        ):
            clause_words[-1].extend(significant)
        elif significant:
            clause_words.append(significant)
    if not clause_words and (everything := words.words_of(text)):
        clause_words.append(everything)
    clauses = tuple(Clause(typed=tuple(typed), stems=tuple(map(words.stem, typed))) for typed in clause_words)
    word_of: dict[str, str] = {}
    for clause in clauses:
        for stem, word in zip(clause.stems, clause.typed, strict=True):
            word_of.setdefault(stem, word)
    return Query(words=word_of, clauses=clauses, text=text)
