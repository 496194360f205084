"""Texts of other servers, and the differences between two of them.

Characters that are invisible, or that reverse the text around them, are replaced by their names, and long texts are
folded. Comparing words takes quadratic time at worst, so only lines of usual length are compared word by word.
"""

from __future__ import annotations

import difflib
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolbelt.core.imported import cleaning
from toolbelt.web.kit import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of characters. `tone` is "changed" where only these words of a line differ, and "hidden" where they name an
    invisible character ("U+202E", with its name in `title`).
    """

    text: str
    tone: Literal["", "changed", "hidden"] = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line. In a difference, `sign` is "+", "−", or "⋯" in place of unchanged lines."""

    pieces: tuple[Piece, ...]
    sign: Literal["", "+", "−", "⋯"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text in two parts: the shown lines and the folded ones, with a label that unfolds them ("40 more lines")."""

    lines: tuple[Line, ...]
    folded: tuple[Line, ...] = ()
    more: str = ""


# The lines and characters shown before folding.
MAX_LINES = 14
MAX_CHARACTERS = 900
# If more words than this differ, all of them are marked together.
MAX_WORDS = 600
# Lines with a smaller share of common words were rewritten, so marks in them would not help.
MIN_SIMILARITY = 0.4

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
# Returns one line as plain text, for titles, buttons and messages.
visible = cleaning.escape_hidden
_Marked = list[tuple[str, bool]]
# A run of words: how it differs, its old start and end, and its new start and end.
_Run = tuple[str, int, int, int, int]


def text(content: str) -> Text:
    """Return a text with its beginning shown and the rest folded."""
    return _fold([Line(pieces=pieces(line)) for line in _break_long(content.split("\n"))])


def difference(lines: Iterable[str]) -> Text:
    """Return a unified diff, with the differing words marked in lines that were changed and not replaced."""
    return _fold(list(_lines(lines)))


def pieces(line: str) -> tuple[Piece, ...]:
    """Return one line, with its invisible characters named."""
    return tuple(_pieces([(line, False)]))


def _lines(diff_lines: Iterable[str]) -> Iterator[Line]:
    for sign, group in itertools.groupby(_split_signs(diff_lines), key=lambda line: line[0] in "+-"):
        run = list(group)
        if sign:
            yield from _changed([line for s, line in run if s == "-"], [line for s, line in run if s == "+"])
            continue
        for mark, line in run:
            if mark == "@":
                yield Line(pieces=(), sign="⋯")
            else:
                yield Line(pieces=pieces(line))


def _split_signs(diff_lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(diff_lines):
        if line.startswith("@@"):
            # The first hunk header is at the beginning of the text, where it separates nothing.
            if number:
                yield "@", ""
        else:
            yield line[:1] or " ", line[1:]


def _changed(removed: Sequence[str], added: Sequence[str]) -> Iterator[Line]:
    """Yield the removed lines, then the added ones, with the words marked that differ between them."""
    pairs = zip(removed, added, strict=True) if len(removed) == len(added) else ()
    compared = [_compare_words(old, new) for old, new in pairs]
    olds = [old for old, _ in compared] or [_unmarked(line) for line in removed]
    news = [new for _, new in compared] or [_unmarked(line) for line in added]
    signs: tuple[tuple[Literal["+", "−"], list[_Marked]], ...] = (("−", olds), ("+", news))
    for sign, lines in signs:
        for marked in itertools.chain.from_iterable(map(_break_line, lines)):
            yield Line(pieces=tuple(_pieces(marked)), sign=sign)


def _unmarked(line: str) -> _Marked:
    return [(line, False)]


def _compare_words(old: str, new: str) -> tuple[_Marked, _Marked]:
    """Mark the words that differ; no words if the lines have little in common."""
    old_parts, new_parts = _WORD.findall(old), _WORD.findall(new)
    head = common_start(old_parts, new_parts)
    tail = common_start(old_parts[head:][::-1], new_parts[head:][::-1])
    middles = old_parts[head : len(old_parts) - tail], new_parts[head : len(new_parts) - tail]
    runs: Sequence[_Run] = [("replace", 0, len(middles[0]), 0, len(middles[1]))]
    if max(map(len, middles)) <= MAX_WORDS:
        runs = difflib.SequenceMatcher(None, *middles, autojunk=False).get_opcodes()
    same = head + tail + sum(last - first for kind, first, last, _, _ in runs if kind == "equal")
    if 2 * same < MIN_SIMILARITY * (len(old_parts) + len(new_parts)):
        return _unmarked(old), _unmarked(new)
    before: _Marked = [("".join(old_parts[:head]), False)]
    after: _Marked = [("".join(new_parts[:head]), False)]
    for kind, first, last, begin, end in runs:
        before.append(("".join(middles[0][first:last]), kind != "equal"))
        after.append(("".join(middles[1][begin:end]), kind != "equal"))
    ending = "".join(old_parts[len(old_parts) - tail :])
    return [*before, (ending, False)], [*after, (ending, False)]


def common_start(old_items: Sequence[str], new_items: Sequence[str]) -> int:
    """Return the length of the common prefix of words or characters."""
    pairs = enumerate(zip(old_items, new_items, strict=False))
    return next((index for index, (old, new) in pairs if old != new), min(len(old_items), len(new_items)))


def _break_line(marked: _Marked) -> Iterator[_Marked]:
    """Shorten the long unchanged runs of a line; break a line without marks."""
    if not any(differs for _, differs in marked):
        yield from (_unmarked(part) for part in _break_long(text for text, _ in marked))
        return
    yield [(run if differs else _shorten(run), differs) for run, differs in marked]


def _shorten(run: str) -> str:
    if len(run) <= MAX_CHARACTERS // 3:
        return run
    edge = MAX_CHARACTERS // 12
    return f"{run[:edge]} ⋯ {run[-edge:]}"


def _pieces(marked: _Marked) -> Iterator[Piece]:
    for run, differs in marked:
        if run and run.isascii() and run.isprintable():
            # Most texts have no hidden characters, and checking each character is slow.
            yield Piece(text=run, tone="changed" if differs else "")
            continue
        for hidden, characters in itertools.groupby(run, key=cleaning.is_hidden):
            if not hidden:
                yield Piece(text="".join(characters), tone="changed" if differs else "")
                continue
            for character in characters:
                name = unicodedata.name(character, "invisible character")
                yield Piece(text=f"U+{ord(character):04X}", tone="hidden", title=name.lower())


def _break_long(lines: Iterable[str]) -> Iterator[str]:
    """Break lines that are longer than the shown part, so that they can be folded too."""
    for line in lines:
        if len(line) <= MAX_CHARACTERS:
            yield line
            continue
        edge = line.rfind(" ", MAX_CHARACTERS // 2, MAX_CHARACTERS)
        at = edge + 1 or MAX_CHARACTERS
        yield line[:at]
        yield line[at:]


def _fold(lines: Sequence[Line]) -> Text:
    characters = itertools.accumulate(sum(len(piece.text) for piece in line.pieces) for line in lines)
    fitting = sum(1 for count in characters if count <= MAX_CHARACTERS)
    shown_count = max(1, min(MAX_LINES, fitting))
    rest = lines[shown_count:]
    # Folding one or two lines is not worth a click.
    if (
        len(rest) <= 2
        and sum(len(piece.text) for line in rest for piece in line.pieces) < MAX_CHARACTERS // 3
    ):
        return Text(lines=tuple(lines))
    more = words.counted(len(rest), "more line")
    return Text(lines=tuple(lines[:shown_count]), folded=tuple(rest), more=more)
