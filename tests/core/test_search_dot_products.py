"""Tests of dot products of a vector with many others."""

from __future__ import annotations

import random

import pytest

from toolbelt.core.search import dot_products, vectors


def of(rows: list[tuple[float, ...]], vector: tuple[float, ...]) -> list[float]:
    stored = dot_products.Vectors([dot_products.row(row) for row in rows])
    return [dot_products.value(product) for product in stored.times(vector)]


def test_products_equal_those_of_plain_arithmetic() -> None:
    numbers = random.Random(7)  # noqa: S311 - needs no secrecy
    rows = [vectors.unit(numbers.gauss(0, 1) for _ in range(96)) for _ in range(50)]
    for vector in rows[:5]:
        plain = [sum(a * b for a, b in zip(row, vector, strict=True)) for row in rows]
        assert of(rows, vector) == pytest.approx(plain, abs=1e-3)


def test_products_of_equal_and_opposite_vectors_do_not_overflow() -> None:
    rows: list[tuple[float, ...]] = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0)]
    assert of(rows, (-1.0, 0.0)) == [-1, 1, 0, 0, 0]
    assert of(rows, (0.0, 1.0)) == [0, 0, 1, -1, 0]
    assert of(rows, (0.0, 0.0)) == [0, 0, 0, 0, 0]


def test_products_with_no_rows_are_empty() -> None:
    assert of([], (0.5, 0.5)) == []


def test_a_value_round_trips_through_its_product() -> None:
    assert dot_products.value(dot_products.product(-0.25)) == -0.25
