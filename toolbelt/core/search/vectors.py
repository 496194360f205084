"""Word vectors: what words mean, as learned from texts (see scripts/train_search.py).

A file holds the words and, for each, a row of whole numbers from -127 to 127 with a scale. The sum of the rows of a
text's words is the text's vector: texts that mean nearly the same have vectors that point nearly the same way.
"""

from __future__ import annotations

import functools
import math
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from operator import add, mul

_HEADER = struct.Struct("<4sII")
_MAGIC = b"TBV1"

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of the words; ``size`` is their length."""

    size: int
    indexes: Mapping[str, int]
    scales: tuple[float, ...]
    rows: memoryview

    def total(self, weights: Iterable[tuple[str, float]]) -> list[float]:
        """Return the weighted sum of the rows of those words that the table contains."""
        total = [0.0] * self.size
        for word, weight in weights:
            index = self.indexes.get(word)
            if index is not None:
                factor = weight * self.scales[index]
                row = self.rows[index * self.size : (index + 1) * self.size]
                total = list(map(add, total, map(factor.__mul__, row)))
        return total


def of(counts: Mapping[str, float]) -> Vector:
    """Return the vector of a text whose words count this often."""
    return unit(table().total((word, math.sqrt(count)) for word, count in counts.items()))


def of_parts(parts: Sequence[Mapping[str, float]]) -> tuple[Vector, list[Vector]]:
    """Return the vector of a text and those of its parts, whose words count this often."""
    word_table = table()
    totals = [word_table.total((word, math.sqrt(count)) for word, count in part.items()) for part in parts]
    if len(totals) == 1:
        return unit(totals[0]), [unit(totals[0])]
    # The sum of the parts is the whole's, but for words of several parts: the root of a sum is not the sum of roots.
    counts: dict[str, list[float]] = {}
    for part in parts:
        for word, count in part.items():
            counts.setdefault(word, []).append(count)
    repeated = word_table.total(
        (word, math.sqrt(sum(word_counts)) - sum(map(math.sqrt, word_counts)))
        for word, word_counts in counts.items()
        if len(word_counts) > 1
    )
    return unit(map(sum, zip(repeated, *totals, strict=True))), [unit(total) for total in totals]


def unit(vector: Iterable[float]) -> Vector:
    """Return the vector with length 1; nothing but zeros stays as it is."""
    values = tuple(vector)
    length = math.sqrt(sum(map(mul, values, values)))
    return tuple(value / length for value in values) if length else values


def rows(of_words: Table) -> dict[str, list[float]]:
    """Return each word's row."""
    return {word: of_words.total([(word, 1.0)]) for word in of_words.indexes}


def quantize(vector: Sequence[float]) -> tuple[float, list[int]]:
    """Return a scale, and the whole numbers from -127 to 127 that it turns into the vector's values."""
    scale = max(map(abs, vector), default=0.0) / 127 or 1.0
    return scale, [round(value / scale) for value in vector]


def pack(table: Mapping[str, Iterable[float]]) -> bytes:
    """Return the file that holds these vectors."""
    rows, scales, size = array("b"), [], 0
    for vector in table.values():
        scale, values = quantize(list(vector))
        size = len(values)
        scales.append(scale)
        rows.extend(values)
    names = "\n".join(table).encode()
    header = _HEADER.pack(_MAGIC, size, len(names))
    return b"".join((header, names, struct.pack(f"<{len(scales)}f", *scales), rows.tobytes()))


def unpack(content: bytes) -> Table:
    """Return the vectors that a file holds."""
    magic, size, length = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError("This is not a file of word vectors: make one with scripts/train_search.py.")
    names = content[_HEADER.size : _HEADER.size + length].decode().split("\n")
    scales = struct.unpack_from(f"<{len(names)}f", content, _HEADER.size + length)
    rows = memoryview(content)[_HEADER.size + length + 4 * len(names) :].cast("b")
    return Table(
        size=size, indexes={name: index for index, name in enumerate(names)}, scales=scales, rows=rows
    )


@functools.cache
def table() -> Table:
    """Return the built-in vectors."""
    return unpack(resources.files(__package__).joinpath("vectors.bin").read_bytes())
