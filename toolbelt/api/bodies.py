"""What is in this body? JSON, read strictly: what two readers could understand in two ways is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Never

from django.http import HttpRequest
from ninja import parser

from toolbelt import conf
from toolbelt.api import problems

MOST_OF_A_KEY = 100

_EMPTY = frozenset({"", "application/json"})


class Parser(parser.Parser):
    """Reads bodies for every operation. Says what is wrong with them as a problem."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Read a body that is not empty."""
        if request.content_type not in _EMPTY:
            raise problems.HttpProblem(
                "unsupported-media-type",
                f"The body is {request.content_type}: send JSON, with Content-Type: application/json.",
            )
        return read(request.body)


def read(body: bytes) -> Any:
    """Read one JSON document. Raises HttpProblem: ``not-json`` or ``too-deep``."""
    try:
        text = body.decode()
        found = json.loads(text, parse_constant=_no_number, parse_float=_float, object_pairs_hook=_object)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise problems.HttpProblem("not-json", "The body is not UTF-8.") from error
    except UnicodeEncodeError as error:
        raise problems.HttpProblem("not-json", "A text in the body holds half a character.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise problems.HttpProblem("not-json", f"The body is not JSON: {error}.") from error
    if _is_deeper(found, conf.API_BODY_DEPTH):
        raise _too_deep()
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


def _too_deep() -> problems.HttpProblem:
    most = conf.API_BODY_DEPTH
    return problems.HttpProblem("too-deep", f"The body is nested more than {most} levels deep: flatten it.")
