"""What is in this body? JSON, read strictly: what two readers could understand in two ways is refused."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import parser

from toolbelt import conf
from toolbelt.api import problems
from toolbelt.core import strict_json

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
        return strict_json.read(body, conf.API_BODY_DEPTH)
    except strict_json.Unreadable as error:
        raise problems.HttpProblem(error.code, str(error)) from error
