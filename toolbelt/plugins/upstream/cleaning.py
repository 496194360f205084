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

# Line breaks other than a line feed.
_LINES = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n"}
# Letters and marks by category that are nevertheless invisible.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Variation selectors, and the whole plane of tags.
_SPANS = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000))
# In a schema, the keys whose values are prose.
_READ = frozenset({"title", "description", "$comment"})
# In a schema, the keys under which keys are names instead of JSON Schema keywords.
_NAMING = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

# In a schema, the keywords that constrain values and contain no schema. Not patterns, which can contain any text.
_PLAIN = frozenset(
    "type enum const required dependentRequired format $ref $anchor multipleOf minimum maximum exclusiveMinimum"  # noqa: SIM905
    " exclusiveMaximum minLength maxLength minItems maxItems uniqueItems minContains maxContains minProperties"
    " maxProperties".split()
)
# In a schema, the keywords that contain a schema, or a list of them.
_NESTING = frozenset(
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
        or character in _BLANK
        or any(ord(character) in span for span in _SPANS)
    )


def has_hidden(text: str) -> bool:
    """Return whether any character of the text is hidden."""
    return any(map(is_hidden, text))


def visible(given: str) -> str:
    """Return the text with the code point of each hidden character in its place, such as ``[U+202E]``."""
    # Nearly all texts are, and checking each character is slow.
    if given.isascii() and given.isprintable():
        return given
    return "".join(f"[U+{ord(character):04X}]" if is_hidden(character) else character for character in given)


def text(given: str, longest: int) -> str:
    """Return the text without hidden characters and with plain line breaks, cut to this length."""
    for end, plain in _LINES.items():
        given = given.replace(end, plain)
    shown = given if given.isascii() and given.isprintable() else "".join(filter(_shows, given))
    shown = shown.strip()
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def line(given: str, longest: int) -> str:
    """Return the text on one line, otherwise like :func:`text`."""
    return text(" ".join(given.split()), longest)


def schema(given: Any, longest: int) -> Any:
    """Return the schema with its prose cleaned, each text cut to this length; everything else is unchanged."""
    return _schema(given, longest, named=False)


def bare_schema(given: Any) -> Any:
    """Return the schema without prose: only what constrains values."""
    match given:
        case Mapping():
            return {
                key: _bare(key, value) for key, value in given.items() if key in _PLAIN | _NESTING | _NAMING
            }
        case list() | tuple():
            return [bare_schema(item) for item in given]
    return given


def _bare(key: str, given: Any) -> Any:
    if key in _NAMING and isinstance(given, Mapping):
        return {name: bare_schema(subschema) for name, subschema in given.items()}
    return bare_schema(given) if key in _NESTING else given


def _schema(given: Any, longest: int, *, named: bool) -> Any:
    match given:
        case Mapping():
            return {
                key: text(value, longest)
                if isinstance(value, str) and key in _READ and not named
                else _schema(value, longest, named=key in _NAMING and not named)
                for key, value in given.items()
            }
        case list() | tuple():
            return [_schema(item, longest, named=False) for item in given]
    return given


def _shows(character: str) -> bool:
    return not is_hidden(character)
