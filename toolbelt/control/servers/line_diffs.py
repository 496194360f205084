"""The lines in which two untrusted texts differ."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator

# A comparison takes quadratic time at worst, and the texts are untrusted: beyond this many lines, everything between
# the equal lines at both ends is shown as removed and added.
MAX_LINES = 2_000
# How many equal lines are shown around those that differ.
AROUND = 3


def lines_of(old: str, new: str) -> tuple[str, ...]:
    """Return all lines of the unified diff of two texts that differ, without its header."""
    were, are = old.splitlines(), new.splitlines()
    if were == are:
        were, are = ([repr(line) for line in text.splitlines(keepends=True)] for text in (old, new))
    head = _alike(were, are)
    tail = _alike(were[head:][::-1], are[head:][::-1])
    # Lines that are equal at both ends are found in linear time and are not part of the comparison.
    first = max(head - AROUND, 0)
    last = max(tail - AROUND, 0)
    were, are = were[first : len(were) - last], are[first : len(are) - last]
    return tuple(_hunks(were, are, first=first, head=head - first, tail=tail - last))


def _alike(were: Iterable[str], are: Iterable[str]) -> int:
    """Return the number of equal lines at the start of two texts."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(were, are, strict=False)))


def _hunks(were: list[str], are: list[str], *, first: int, head: int, tail: int) -> Iterator[str]:
    """Yield the groups of lines that differ, with their context; ``first`` lines precede all of them."""
    if max(len(were), len(are)) - head - tail > MAX_LINES:
        before, after = len(were) - tail, len(are) - tail
        yield _hunk_header(first, 0, len(were), 0, len(are))
        yield from (f" {line}" for line in were[:head])
        yield from (f"-{line}" for line in were[head:before])
        yield from (f"+{line}" for line in are[head:after])
        yield from (f" {line}" for line in were[before:])
        return
    for group in difflib.SequenceMatcher(None, were, are).get_grouped_opcodes(AROUND):
        yield _hunk_header(first, group[0][1], group[-1][2], group[0][3], group[-1][4])
        for tag, i, k, j, m in group:
            if tag == "equal":
                yield from (f" {line}" for line in were[i:k])
                continue
            yield from (f"-{line}" for line in were[i:k])
            yield from (f"+{line}" for line in are[j:m])


def _hunk_header(first: int, i: int, k: int, j: int, m: int) -> str:
    return f"@@ -{first + i + 1},{k - i} +{first + j + 1},{m - j} @@"
