"""Texts of other servers, and the differences between two of them.

Characters that are invisible, or that reverse the text around them, are named instead of printed, and long texts are
folded. Comparing words takes the square of their number at worst, so it is done for lines of usual length only.
"""

from __future__ import annotations

import difflib
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolbelt.plugins.upstream import cleaning
from toolbelt.web.kit import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of characters. `tone` is "changed" where only these words of a line differ, and "hidden" where they name a
    invisible character ("U+202E", with its name in `title`).
    """

    text: str
    tone: Literal["", "changed", "hidden"] = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line. Of a difference, `sign` is "+", "−", or "⋯" where lines that did not change are left out."""

    pieces: tuple[Piece, ...]
    sign: Literal["", "+", "−", "⋯"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text in two parts: what is shown, and what is folded, with what unfolds it in words ("Show 40 more lines")."""

    shown: tuple[Line, ...]
    folded: tuple[Line, ...] = ()
    more: str = ""


# The lines and characters shown before folding.
MAX_LINES = 14
MAX_CHARACTERS = 900
# Where more words than this differ, they are marked as one.
MAX_WORDS = 600
# Lines with less than this in common were rewritten, so marks in them would not help.
ALIKE = 0.4

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
# Shows one line as plain text, for where there is no room for marks: in a title, a button, a message.
visible = cleaning.escape_hidden
_Marked = list[tuple[str, bool]]
# What became of a run of words: how they differ, where they were, where they are.
_Run = tuple[str, int, int, int, int]


def text(given: str) -> Text:
    """Show a text: its beginning, and the rest of it folded."""
    return _folded([Line(pieces=pieces(line)) for line in _cut(given.split("\n"))])


def difference(lines: Iterable[str]) -> Text:
    """Show the lines of a unified difference, with the words that differ where a line was changed and not replaced."""
    return _folded(list(_lines(lines)))


def pieces(line: str) -> tuple[Piece, ...]:
    """Show one line, with its invisible characters named."""
    return tuple(_pieces([(line, False)]))


def _lines(given: Iterable[str]) -> Iterator[Line]:
    for sign, group in itertools.groupby(_signed(given), key=lambda line: line[0] in "+-"):
        run = list(group)
        if sign:
            yield from _changed([line for s, line in run if s == "-"], [line for s, line in run if s == "+"])
            continue
        for mark, line in run:
            if mark == "@":
                yield Line(pieces=(), sign="⋯")
            else:
                yield Line(pieces=pieces(line))


def _signed(given: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(given):
        if line.startswith("@@"):
            # The first hunk header is at the beginning of the text, where it says nothing.
            if number:
                yield "@", ""
        else:
            yield line[:1] or " ", line[1:]


def _changed(removed: Sequence[str], added: Sequence[str]) -> Iterator[Line]:
    """Return a difference: the removed lines, then the added ones, with the words that differ between them."""
    pairs = zip(removed, added, strict=True) if len(removed) == len(added) else ()
    compared = [_compared(old, new) for old, new in pairs]
    olds = [old for old, _ in compared] or [_whole(line) for line in removed]
    news = [new for _, new in compared] or [_whole(line) for line in added]
    signs: tuple[tuple[Literal["+", "−"], list[_Marked]], ...] = (("−", olds), ("+", news))
    for sign, lines in signs:
        for marked in itertools.chain.from_iterable(map(_broken, lines)):
            yield Line(pieces=tuple(_pieces(marked)), sign=sign)


def _whole(line: str) -> _Marked:
    return [(line, False)]


def _compared(old: str, new: str) -> tuple[_Marked, _Marked]:
    """Mark the words that differ; no words if the lines have little in common."""
    were, are = _WORD.findall(old), _WORD.findall(new)
    head = common_start(were, are)
    tail = common_start(were[head:][::-1], are[head:][::-1])
    middles = were[head : len(were) - tail], are[head : len(are) - tail]
    runs: Sequence[_Run] = [("replace", 0, len(middles[0]), 0, len(middles[1]))]
    if max(map(len, middles)) <= MAX_WORDS:
        runs = difflib.SequenceMatcher(None, *middles, autojunk=False).get_opcodes()
    same = head + tail + sum(last - first for kind, first, last, _, _ in runs if kind == "equal")
    if 2 * same < ALIKE * (len(were) + len(are)):
        return _whole(old), _whole(new)
    before: _Marked = [("".join(were[:head]), False)]
    after: _Marked = [("".join(are[:head]), False)]
    for kind, first, last, begin, end in runs:
        before.append(("".join(middles[0][first:last]), kind != "equal"))
        after.append(("".join(middles[1][begin:end]), kind != "equal"))
    ending = "".join(were[len(were) - tail :])
    return [*before, (ending, False)], [*after, (ending, False)]


def common_start(were: Sequence[str], are: Sequence[str]) -> int:
    """Return how many words, or characters, both begin with."""
    pairs = enumerate(zip(were, are, strict=False))
    return next((place for place, (old, new) in pairs if old != new), min(len(were), len(are)))


def _broken(marked: _Marked) -> Iterator[_Marked]:
    """Shorten the long unchanged runs of a line; break a line without marks."""
    if not any(differs for _, differs in marked):
        yield from (_whole(part) for part in _cut(text for text, _ in marked))
        return
    yield [(run if differs else _shortened(run), differs) for run, differs in marked]


def _shortened(run: str) -> str:
    if len(run) <= MAX_CHARACTERS // 3:
        return run
    edge = MAX_CHARACTERS // 12
    return f"{run[:edge]} ⋯ {run[-edge:]}"


def _pieces(marked: _Marked) -> Iterator[Piece]:
    for run, differs in marked:
        if run and run.isascii() and run.isprintable():
            # Most texts hide nothing, and checking each character takes long.
            yield Piece(text=run, tone="changed" if differs else "")
            continue
        for hidden, characters in itertools.groupby(run, key=cleaning.is_hidden):
            if not hidden:
                yield Piece(text="".join(characters), tone="changed" if differs else "")
                continue
            for character in characters:
                name = unicodedata.name(character, "invisible character")
                yield Piece(text=f"U+{ord(character):04X}", tone="hidden", title=name.lower())


def _cut(lines: Iterable[str]) -> Iterator[str]:
    """Break lines that are longer than the unfolded part, so that they can be folded, too."""
    for line in lines:
        if len(line) <= MAX_CHARACTERS:
            yield line
            continue
        edge = line.rfind(" ", MAX_CHARACTERS // 2, MAX_CHARACTERS)
        at = edge + 1 or MAX_CHARACTERS
        yield line[:at]
        yield line[at:]


def _folded(lines: Sequence[Line]) -> Text:
    characters = itertools.accumulate(sum(len(piece.text) for piece in line.pieces) for line in lines)
    fitting = sum(1 for so_far in characters if so_far <= MAX_CHARACTERS)
    open_ = max(1, min(MAX_LINES, fitting))
    rest = lines[open_:]
    # What would be a line or two longer is not worth a click.
    if (
        len(rest) <= 2
        and sum(len(piece.text) for line in rest for piece in line.pieces) < MAX_CHARACTERS // 3
    ):
        return Text(shown=tuple(lines))
    more = f"{words.number(len(rest))} more line{'' if len(rest) == 1 else 's'}"
    return Text(shown=tuple(lines[:open_]), folded=tuple(rest), more=more)
