"""Tests that upstream text shows all that it contains, and contains all that it shows."""

from __future__ import annotations

import pytest

from toolbelt.plugins.upstream import cleaning

HIDDEN = {
    "a zero width space": "\u200b",
    "an override of the direction": "\u202e",
    "an isolate": "\u2066",
    "a tag": "\U000e0041",
    "a variation selector": "\U000e0101",
    "a soft hyphen": "\u00ad",
    "a byte order mark": "\ufeff",
    "an escape": "\x1b",
    "a bell": "\x07",
    "a private character": "\ue000",
    "a filler": "\u3164",
}


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_character_that_shows_nothing_is_taken_out(character: str) -> None:
    assert cleaning.has_hidden(f"read{character}me")
    assert cleaning.text(f"read{character}me", 100) == "readme"


@pytest.mark.parametrize("text", ["Grüße, 世界, مرحبا", "a\n\tb", "naïve ✓ 🙂", "e\u0301"])
def test_what_shows_something_stays_in_any_script(text: str) -> None:
    assert not cleaning.has_hidden(text)
    assert cleaning.text(text, 100) == text


def test_ends_of_lines_are_plain_and_what_is_too_long_is_cut() -> None:
    assert cleaning.text("a\r\nb\u2028c", 100) == "a\nb\nc"
    assert cleaning.text("x" * 11, 10) == "x" * 9 + "…"
    assert cleaning.line(" a \n b ", 10) == "a b"


def test_of_a_schema_what_is_for_reading_is_cleaned_and_what_is_a_value_stays() -> None:
    given = {
        "description": "a\u200bb",
        "properties": {
            "description": {"type": "string", "description": "c\u202ed", "enum": ["e\u200bf"]},
            "title": {"title": "g\u200bh"},
        },
        "required": ["description"],
    }

    assert cleaning.schema(given, 100) == {
        "description": "ab",
        "properties": {
            "description": {"type": "string", "description": "cd", "enum": ["e\u200bf"]},
            "title": {"title": "gh"},
        },
        "required": ["description"],
    }
