"""What does this JSON say? Read strictly: what two readers could understand in two ways is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Literal, Never

MOST_OF_A_KEY = 100
# Half a character, unless the other half follows.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Unreadable(ValueError):
    """The sender's to put right: it is no JSON, or nested too deeply."""

    def __init__(self, code: Literal["not-json", "too-deep"], message: str) -> None:
        super().__init__(message)
        self.code = code


def read(body: bytes, deepest: int) -> Any:
    """Read one document in UTF-8 that is nested at most ``deepest`` levels deep. Raises :class:`Unreadable`."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("not-json", "The body is not UTF-8.") from error
    return read_text(text, deepest)


def read_text(text: str, deepest: int) -> Any:
    """Read one document, as :func:`read` does, from its text."""
    try:
        found = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Unreadable("not-json", "A text in the body holds half a character.") from error
    except RecursionError as error:
        raise _too_deep(deepest) from error
    except ValueError as error:
        raise Unreadable("not-json", f"The body is not JSON: {error}.") from error
    # What opens no more brackets than that needs no walk.
    if text.count("{") + text.count("[") > deepest and _is_deeper(found, deepest):
        raise _too_deep(deepest)
    return found


def _no_number(word: str) -> Never:
    raise ValueError(f"{word} is no number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the key {name[:MOST_OF_A_KEY]!r} stands twice in one object")
            seen.add(name)
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_float, object_pairs_hook=_object)


def _is_deeper(document: Any, most: int) -> bool:
    """Say whether it is nested more than ``most`` levels deep, going down level by level."""
    level = [document]
    for _ in range(most):
        level = [nested for one in level for nested in _within(one)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _within(one: Any) -> Iterable[Any]:
    if isinstance(one, dict):
        return one.values()
    return one if isinstance(one, list) else ()


def _too_deep(most: int) -> Unreadable:
    return Unreadable("too-deep", f"The body is nested more than {most} levels deep: flatten it.")
