"""How does a text that a stranger wrote become one that shows what it says?

Characters that cannot be seen, or that change the order of those that can, carry what an operator does not read and a
model does. They are taken out, wherever a text is for reading. Where a character is part of a value (a name of an
argument, one of an enumeration) it stays, as the server would not know the value without it; it is told of instead.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

# Ends of lines that no editor shows as such.
_LINES = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n"}
# Letters and marks by their category, that nevertheless show nothing.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Variation selectors, and the plane of tags, whatever of it is assigned.
_SPANS = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000))
# In a schema, the keys whose values are for reading.
_READ = frozenset({"title", "description", "$comment"})
# In a schema, the keys under which keys are names, and not words of JSON Schema.
_NAMING = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

# In a schema, the keys that say what fits and hold no schema. Patterns are not among them: they can say anything.
_PLAIN = frozenset(
    "type enum const required dependentRequired format $ref $anchor multipleOf minimum maximum exclusiveMinimum"  # noqa: SIM905
    " exclusiveMaximum minLength maxLength minItems maxItems uniqueItems minContains maxContains minProperties"
    " maxProperties".split()
)
# In a schema, the keys that hold one schema, or a list of them.
_NESTING = frozenset(
    "items prefixItems contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties not if"  # noqa: SIM905
    " then else allOf anyOf oneOf".split()
)


def is_hidden(character: str) -> bool:
    """Say whether the character shows nothing, or changes how others show: control, bidi, zero width, tag, private."""
    if character in "\n\t":
        return False
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")
        or character in _BLANK
        or any(ord(character) in span for span in _SPANS)
    )


def has_hidden(text: str) -> bool:
    """Say whether any character of the text is hidden."""
    return any(map(is_hidden, text))


def visible(given: str) -> str:
    """Return the text with the code point of each hidden character in its place, such as ``[U+202E]``."""
    # As nearly all are; and looking at each character takes its time.
    if given.isascii() and given.isprintable():
        return given
    return "".join(f"[U+{ord(one):04X}]" if is_hidden(one) else one for one in given)


def text(given: str, longest: int) -> str:
    """Give the text without what is hidden in it, with plain ends of lines, cut to so many characters."""
    for end, plain in _LINES.items():
        given = given.replace(end, plain)
    shown = given if given.isascii() and given.isprintable() else "".join(filter(_shows, given))
    shown = shown.strip()
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def line(given: str, longest: int) -> str:
    """Give the text so, in one line."""
    return text(" ".join(given.split()), longest)


def schema(given: Any, longest: int) -> Any:
    """Give the schema with its texts for reading cleaned, each cut to so many characters; all else as it is."""
    return _schema(given, longest, named=False)


def bare_schema(given: Any) -> Any:
    """Give of a schema what values are held to, and nothing that is only there to be read."""
    match given:
        case Mapping():
            return {key: _bare(key, one) for key, one in given.items() if key in _PLAIN | _NESTING | _NAMING}
        case list() | tuple():
            return [bare_schema(one) for one in given]
    return given


def _bare(key: str, given: Any) -> Any:
    if key in _NAMING and isinstance(given, Mapping):
        return {name: bare_schema(one) for name, one in given.items()}
    return bare_schema(given) if key in _NESTING else given


def _schema(given: Any, longest: int, *, named: bool) -> Any:
    match given:
        case Mapping():
            return {
                key: text(one, longest)
                if isinstance(one, str) and key in _READ and not named
                else _schema(one, longest, named=key in _NAMING and not named)
                for key, one in given.items()
            }
        case list() | tuple():
            return [_schema(one, longest, named=False) for one in given]
    return given


def _shows(character: str) -> bool:
    return not is_hidden(character)
