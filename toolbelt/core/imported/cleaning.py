"""Cleaning of texts from upstream servers, so that operators see everything that a model does.

Characters that are invisible, or that change the order of visible characters, hide text from operators but not from
models. They are removed from texts. In values (a name of an argument, a value of an enumeration) they stay, because the
server would not recognize the changed value; they are reported instead.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from typing import Any

from toolbelt.core import texts

# Line breaks other than a line feed.
_LINE_BREAKS = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n"}
# Letters and marks by category that are nevertheless invisible.
_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Variation selectors, and the whole plane of tags.
_INVISIBLE_RANGES = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000))
# In a schema, the keys whose values are prose.
_PROSE_KEYS = frozenset({"title", "description", "$comment"})
# In a schema, the keys under which keys are names instead of JSON Schema keywords.
_NAME_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

# In a schema, the keywords that constrain values and contain no schema. Not patterns, which can contain any text.
_CONSTRAINTS = frozenset(
    "type enum const required dependentRequired format $ref $anchor multipleOf minimum maximum exclusiveMinimum"  # noqa: SIM905
    " exclusiveMaximum minLength maxLength minItems maxItems uniqueItems minContains maxContains minProperties"
    " maxProperties".split()
)
# In a schema, the keywords that contain a schema, or a list of them.
_SUBSCHEMAS = frozenset(
    "items prefixItems contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties not if"  # noqa: SIM905
    " then else allOf anyOf oneOf".split()
)


@functools.lru_cache(maxsize=4096)
def is_hidden(character: str) -> bool:
    """Return whether the character is invisible or changes how others show: control, bidi, zero-width, tag, private."""
    if character in "\n\t":
        return False
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")
        or character in _INVISIBLE_LETTERS
        or any(ord(character) in span for span in _INVISIBLE_RANGES)
    )


def has_hidden(text: str) -> bool:
    """Return whether any character of the text is hidden."""
    return any(map(is_hidden, text))


def escape_hidden(original: str) -> str:
    """Return the text with the code point of each hidden character in its place, such as ``[U+202E]``."""
    # Nearly all texts are plain ASCII, and checking each character is slow.
    if original.isascii() and original.isprintable():
        return original
    return "".join(
        f"[U+{ord(character):04X}]" if is_hidden(character) else character for character in original
    )


def text(original: str, max_length: int) -> str:
    """Return the text without hidden characters and with plain line breaks, cut to this length."""
    for end, plain in _LINE_BREAKS.items():
        original = original.replace(end, plain)
    cleaned = (
        original if original.isascii() and original.isprintable() else "".join(filter(_is_visible, original))
    )
    return texts.cut(cleaned.strip(), max_length)


def line(original: str, max_length: int) -> str:
    """Return the text on one line, otherwise like :func:`text`."""
    return text(" ".join(original.split()), max_length)


def schema(document: Any, max_length: int) -> Any:
    """Return the schema with its prose cleaned, each text cut to this length; everything else is unchanged."""
    return _schema(document, max_length, is_by_name=False)


def bare_schema(document: Any) -> Any:
    """Return the schema without prose: only what constrains values."""
    match document:
        case Mapping():
            return {
                key: _bare(key, value)
                for key, value in document.items()
                if key in _CONSTRAINTS | _SUBSCHEMAS | _NAME_MAPS
            }
        case list() | tuple():
            return [bare_schema(item) for item in document]
    return document


def _bare(key: str, document: Any) -> Any:
    if key in _NAME_MAPS and isinstance(document, Mapping):
        return {name: bare_schema(subschema) for name, subschema in document.items()}
    return bare_schema(document) if key in _SUBSCHEMAS else document


def _schema(document: Any, max_length: int, *, is_by_name: bool) -> Any:
    match document:
        case Mapping():
            return {
                key: text(value, max_length)
                if isinstance(value, str) and key in _PROSE_KEYS and not is_by_name
                else _schema(value, max_length, is_by_name=key in _NAME_MAPS and not is_by_name)
                for key, value in document.items()
            }
        case list() | tuple():
            return [_schema(item, max_length, is_by_name=False) for item in document]
    return document


def _is_visible(character: str) -> bool:
    return not is_hidden(character)
