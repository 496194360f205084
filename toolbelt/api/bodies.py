"""Parsing of request bodies: strict JSON, which refuses documents that two parsers could read differently."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import parser

from toolbelt import conf
from toolbelt.api import problems
from toolbelt.core import strict_json

_EMPTY = frozenset({"", "application/json"})


class Parser(parser.Parser):
    """The body parser of every operation."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the parsed body. Raise HttpProblem if it is not JSON."""
        if request.content_type not in _EMPTY:
            raise problems.HttpProblem(
                "unsupported-media-type",
                f"The body is {request.content_type}. Send JSON, with Content-Type: application/json.",
            )
        return read(request.body)


def read(body: bytes) -> Any:
    """Return a parsed JSON document. Raise HttpProblem with code ``not-json`` or ``too-deep``."""
    try:
        return strict_json.read(body, conf.API_BODY_DEPTH)
    except strict_json.UnreadableError as error:
        raise problems.HttpProblem(error.code, str(error)) from error
