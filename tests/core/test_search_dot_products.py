"""Dot products of one vector with many."""

from __future__ import annotations

import random

import pytest

from toolbelt.core.search import dot_products, vectors


def of(rows: list[tuple[float, ...]], vector: tuple[float, ...]) -> list[float]:
    stored = dot_products.Vectors([dot_products.row(row) for row in rows])
    return [dot_products.value(product) for product in stored.times(vector)]


def test_the_products_are_those_of_the_values() -> None:
    numbers = random.Random(7)  # noqa: S311 - needs no secrecy
    rows = [vectors.unit(numbers.gauss(0, 1) for _ in range(96)) for _ in range(50)]
    for vector in rows[:5]:
        plain = [sum(a * b for a, b in zip(row, vector, strict=True)) for row in rows]
        assert of(rows, vector) == pytest.approx(plain, abs=1e-3)


def test_equal_and_opposite_vectors_have_room() -> None:
    rows: list[tuple[float, ...]] = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0)]
    assert of(rows, (-1.0, 0.0)) == [-1, 1, 0, 0, 0]
    assert of(rows, (0.0, 1.0)) == [0, 0, 1, -1, 0]
    assert of(rows, (0.0, 0.0)) == [0, 0, 0, 0, 0]


def test_no_rows_have_no_products() -> None:
    assert of([], (0.5, 0.5)) == []


def test_a_value_and_its_product_are_the_same_number() -> None:
    assert dot_products.value(dot_products.product(-0.25)) == -0.25
