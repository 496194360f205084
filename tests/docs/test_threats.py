"""Tests that each promise in docs/threats.md names a test that exists."""

from __future__ import annotations

import re

from tests.docs import pages

REFERENCES = re.findall(
    r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (pages.ROOT / "docs/threats.md").read_text(encoding="utf-8")
)


def test_the_threats_page_names_tests() -> None:
    assert len(REFERENCES) > 40


def test_every_test_named_on_the_threats_page_exists() -> None:
    missing = [
        f"{file}::{test}"
        for file, test in REFERENCES
        if not (pages.ROOT / file).exists()
        or not re.search(rf"def {test or 'test_'}", (pages.ROOT / file).read_text(encoding="utf-8"))
    ]
    assert missing == []
