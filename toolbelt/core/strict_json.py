"""Strict reading of JSON: documents that parsers read differently are rejected, as are values that cannot be stored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Never

MAX_PER_KEY = 100
# How deep a stored value may be. Deep enough for real schemas (the deepest of 484 has 21 levels), shallow enough to
# walk safely.
MAX_DEPTH = 64
# In bits. Python refuses to write numbers of more than 4300 digits.
MAX_NUMBER_LENGTH = 1024
# A surrogate, which must be followed by its other half.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class UnreadableError(ValueError):
    """The sender's text is not JSON, or is nested too deeply."""

    def __init__(self, code: Literal["not-json", "too-deep"], message: str) -> None:
        super().__init__(message)
        self.code = code


def read(body: bytes, max_depth: int) -> Any:
    """Return one UTF-8 document of at most ``max_depth`` levels; raise :class:`UnreadableError` if it is invalid."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError("not-json", "The body is not UTF-8.") from error
    return read_text(text, max_depth)


def read_text(text: str, max_depth: int) -> Any:
    """Return one document from its text, as :func:`read` does."""
    try:
        document = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UnreadableError("not-json", "A text in the body contains a lone surrogate.") from error
    except RecursionError as error:
        raise _too_deep(max_depth) from error
    except ValueError as error:
        raise UnreadableError("not-json", f"The body is not JSON: {error}.") from error
    # With fewer brackets than that, the depth need not be measured.
    if text.count("{") + text.count("[") > max_depth and _is_deeper(document, max_depth):
        raise _too_deep(max_depth)
    return document


def is_storable(text: str) -> bool:
    """Return whether a text can be stored and sent: it is without NUL and without lone surrogates."""
    return not _UNSTORABLE.search(text)


def copied_object(value: Any) -> dict[str, Any] | None:
    """Return a copy of a JSON object that can be stored; None if the value is none."""
    try:
        return dict(copied(value)) if isinstance(value, Mapping) else None
    except ValueError:
        return None


def copied(value: Any, depth: int = 0) -> Any:
    """Return a copy of a JSON value that can be stored; raise ValueError if it is none."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    match value:
        case Mapping():
            if not all(isinstance(key, str) and is_storable(key) for key in value):
                raise ValueError("a key in it is not text that can be stored")
            return {key: copied(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [copied(item, depth + 1) for item in value]
        case str() if not is_storable(value):
            raise ValueError("a text in it cannot be stored")
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        case int() if value.bit_length() > MAX_NUMBER_LENGTH:
            raise ValueError("a number in it is too large to be written")
        case None | str() | bool() | int() | float():
            return value
    raise ValueError(f"a {type(value).__name__} has no form in JSON")


def _no_number(word: str) -> Never:
    raise ValueError(f"{word} is not a number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise ValueError(f"the key {name[:MAX_PER_KEY]!r} is repeated in one object")
            names.add(name)
    return result


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_float, object_pairs_hook=_object)


def _is_deeper(document: Any, maximum: int) -> bool:
    """Return whether the document is nested deeper than ``maximum`` levels."""
    level = [document]
    for _ in range(maximum):
        level = [nested for value in level for nested in _within(value)]
        if not level:
            return False
    return any(isinstance(value, dict | list) for value in level)


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep(maximum: int) -> UnreadableError:
    return UnreadableError("too-deep", f"The body is nested more than {maximum} levels deep: flatten it.")
