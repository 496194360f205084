"""Tests that each promise in docs/threats.md names a test that exists."""

from __future__ import annotations

import re

import pytest

from tests.docs import pages

NAMED = re.findall(
    r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (pages.ROOT / "docs/threats.md").read_text(encoding="utf-8")
)


def test_promises_name_their_tests() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[f"{file}::{test}" for file, test in NAMED])
def test_the_test_of_a_promise_exists(file: str, test: str) -> None:
    written = (pages.ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"def {test or 'test_'}", written)
