"""Printing of tables with aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def lines(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each row. The last column is not padded."""
    table = list(rows)
    widths = [
        max((len(row[column]) for row in table if column < len(row) - 1), default=0)
        for column in range(max(map(len, table), default=0))
    ]
    for row in table:
        *first, last = row
        padded = [text.ljust(width) for text, width in zip(first, widths, strict=False)]
        yield "  ".join([*padded, last]).rstrip()
