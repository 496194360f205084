"""Tests that text from servers is cleaned of invisible characters and keeps everything visible."""

from __future__ import annotations

import pytest

from toolbelt.core.imported import cleaning

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
def test_invisible_characters_are_removed(character: str) -> None:
    assert cleaning.has_hidden(f"read{character}me")
    assert cleaning.text(f"read{character}me", 100) == "readme"


@pytest.mark.parametrize("text", ["Grüße, 世界, مرحبا", "a\n\tb", "naïve ✓ 🙂", "e\u0301"])
def test_visible_characters_of_any_script_are_kept(text: str) -> None:
    assert not cleaning.has_hidden(text)
    assert cleaning.text(text, 100) == text


def test_line_endings_are_normalized_and_long_texts_truncated() -> None:
    assert cleaning.text("a\r\nb\u2028c", 100) == "a\nb\nc"
    assert cleaning.text("x" * 11, 10) == "x" * 9 + "…"
    assert cleaning.line(" a \n b ", 10) == "a b"


def test_texts_in_a_schema_are_cleaned_and_values_are_kept() -> None:
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
