"""Strict reading of JSON: documents that parsers read differently are rejected."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Literal, Never

MAX_PER_KEY = 100
# A surrogate, which must be followed by its other half.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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
