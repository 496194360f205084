"""Word vectors: what words mean, as learned from texts (see scripts/search).

A file has a row of whole numbers, with a scale, for each word. The sum of the rows of a text's words is the text's
vector: texts that mean nearly the same have vectors that point nearly the same way.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# Values of unit vectors are multiples of 1/4096. Sums of their products are then exact in 32 bits, so that the product
# of two vectors is the same on every machine, and whatever other vectors it is computed with.
_STEPS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of the words, each by the number of its word."""

    numbers: Mapping[str, int]
    rows: Array
    scales: Array

    def of(self, counts: Mapping[str, float]) -> Array:
        """Return the vector of a text whose words count this often."""
        known = {self.numbers[word]: count for word, count in counts.items() if word in self.numbers}
        numbers = list(known)
        weights = np.sqrt(list(known.values())) * self.scales[numbers]
        return unit(weights @ self.rows[numbers])

    def matrix(self) -> Array:
        """Return the rows, scaled."""
        matrix: Array = self.rows * self.scales[:, None]
        return matrix


def unit(vectors: Array) -> Array:
    """Return a vector or rows of vectors with length 1; nothing but zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled = np.rint(vectors * (_STEPS / np.where(lengths, lengths, 1.0))) / _STEPS
    return scaled.astype(np.float32)


def products(rows: Array, vector: Array) -> Array:
    """Return the product of each row with a vector. Not with ``@``, which would use several threads for many rows."""
    result: Array = np.einsum("ij,j->i", rows, vector)
    return result


def unpack(content: bytes) -> Table:
    """Return the vectors that a file holds."""
    with np.load(io.BytesIO(content)) as file:
        words = str(file["words"]).split("\n")
        return Table(
            numbers={word: number for number, word in enumerate(words)},
            rows=file["rows"],
            scales=file["scales"],
        )


def read(name: str) -> bytes:
    """Return a file of vectors that is part of Toolbelt."""
    return resources.files(__package__).joinpath(name).read_bytes()


@functools.cache
def table() -> Table:
    """Return the built-in vectors."""
    return unpack(read("vectors.npz"))
