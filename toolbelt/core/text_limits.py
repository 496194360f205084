"""Limits of texts that people paste, upload or pass as files: they bound the time and the memory that reading takes.

Every message names the limit. A TOML text is measured before it is parsed, because parsing takes time that grows with
the square of the parts of a dotted key.
"""

from __future__ import annotations

import re
from typing import Any

# How many characters a file may have: a belt of 10,000 tools has about 25 million.
MAX_CHARACTERS = 50_000_000
# How deep JSON in a belt may be nested, plus the levels of a belt itself.
MAX_DEPTH = 64 + 8
# How many keys and items the file of a client may have. The largest one that is known has a few hundred.
MAX_VALUES = 20_000
# How many parts a dotted key of TOML may have: a.b.c has three.
MAX_KEY_PARTS = 16
# How many digits a number may have: some forms take time that grows with the square of their length.
MAX_DIGITS = 1_000
# How many keys and items a YAML file may have once its aliases are written out: a belt of 10,000 tools has about a
# million.
MAX_EXPANDED = 5_000_000

# What separates keys and values in TOML. A text that does not end is matched to the end of the file, and a part of a
# text is never tried again, so that each character is read once.
_TOML = re.compile(
    r'"""(?:[^\\"]|\\.|"(?!""))*+(?:""")?'
    r"|'''(?:[^']|'(?!''))*+(?:''')?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|[.\n=,{}\[\]]",
    re.DOTALL,
)


class LimitError(ValueError):
    """The text exceeds a limit, which the message names."""


def check_size(text: str, maximum: int = MAX_CHARACTERS) -> None:
    """Raise LimitError for a text with more characters."""
    if len(text) > maximum:
        raise LimitError(f"it has more than {maximum:,} characters")


def check_toml(text: str) -> None:
    """Raise LimitError for TOML with too many keys, nested too deeply, or with a key of too many parts."""
    values = depth = parts = 0
    for match in _TOML.finditer(text):
        sign = match[0]
        if sign == ".":
            parts += 1
            values += 1
            if parts >= MAX_KEY_PARTS:
                raise LimitError(f"a key has more than {MAX_KEY_PARTS} parts")
        elif sign in "\n=,{}[]":
            parts = 0
            values += sign in "=,["
            depth += (sign in "{[") - (sign in "}]")
            if depth > MAX_DEPTH:
                raise LimitError(f"it is nested more than {MAX_DEPTH} levels deep")
        if values > MAX_VALUES:
            raise LimitError(f"it has more than {MAX_VALUES:,} keys and items")


def check_document(document: Any) -> None:
    """Raise LimitError for a document, already parsed, with too many keys and items, or nested too deeply."""
    values, level = 0, [document]
    for _ in range(MAX_DEPTH + 1):
        level = [item for value in level if isinstance(value, dict | list) for item in _items(value)]
        values += len(level)
        if values > MAX_VALUES:
            raise LimitError(f"it has more than {MAX_VALUES:,} keys and items")
        if not level:
            return
    raise LimitError(f"it is nested more than {MAX_DEPTH} levels deep")


def _items(value: dict[Any, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value
