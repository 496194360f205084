"""Conditional requests: ETags of configured values, If-Match and If-None-Match.

An ETag is the digest of the response's document, so it changes if and only if the document does. ``If-Match`` is
checked within the transaction of the change: the expected value is passed to `control`, which compares it while
holding the lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils import http

from toolbelt.api import problems
from toolbelt.core import errors, schema

T = TypeVar("T")

# Clients may store a copy, but must revalidate it before each use.
CACHE_CONTROL = "private, no-cache"


def tag(document: Any) -> str:
    """Return the ETag of a JSON document."""
    return f'"{hashlib.sha256(schema.canonical(document).encode()).hexdigest()[:32]}"'


def is_known(request: HttpRequest, current: str) -> bool:
    """Return whether the client already has the version with the ETag ``current`` (If-None-Match)."""
    known_tags = http.parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known_tags or current in [etag.removeprefix("W/") for etag in known_tags]


def conditional_response(request: HttpRequest, response: HttpResponse, document: T) -> T | HttpResponse:
    """Return the document, setting its ETag on the response, or a 304 response if the client already has it."""
    current = tag(document)
    if is_known(request, current):
        return HttpResponse(status=304, headers={"ETag": current, "Cache-Control": CACHE_CONTROL})
    response["ETag"], response["Cache-Control"] = current, CACHE_CONTROL
    return document


@contextmanager
def checked(request: HttpRequest, current_value: T, *tags: str) -> Iterator[T | None]:
    """Yield the value that a change must still find: the current value if If-Match names it, None without If-Match.

    ``tags`` are its ETags, unless they are its digest. Raise HttpProblem (412) if If-Match names another version, and
    if the value changes before the change is made.
    """
    if_match = request.headers.get("If-Match")
    if if_match is None:
        yield None
        return
    expected_tags = http.parse_etags(if_match)
    if not expected_tags:
        raise _precondition_failed("If-Match has no ETag. Send an ETag in quotes, as you received it, or *.")
    current_tags = tags or (tag(current_value),)
    if "*" not in expected_tags and not set(current_tags) & set(expected_tags):
        raise _precondition_failed(
            f"You saw {', '.join(expected_tags)}, and its ETag is {current_tags[0]} now."
        )
    try:
        yield current_value
    except errors.Stale as stale:
        raise _precondition_failed(str(stale)) from stale


def _precondition_failed(reason: str) -> problems.HttpProblem:
    return problems.HttpProblem(
        "precondition-failed", f"{reason} Read it again, then repeat the change if you still want it."
    )
