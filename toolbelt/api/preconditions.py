"""Is it still what the caller saw? The ETag of what is configured, and what If-Match and If-None-Match ask of it.

A tag is the digest of what is answered, so it moves when that does, and with nothing else. ``If-Match`` is kept in
the transaction of the change: what the caller saw goes to the door, which compares it under its lock.
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

# A copy may be kept by whoever asked, and used after asking whether it is still so.
KEPT = "private, no-cache"


def tag(document: Any) -> str:
    """Give the ETag of a JSON document."""
    return f'"{hashlib.sha256(schema.canonical(document).encode()).hexdigest()[:32]}"'


def is_known(request: HttpRequest, current: str) -> bool:
    """Say whether the caller has what the ETag ``current`` stands for already (If-None-Match)."""
    known = http.parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or current in [one.removeprefix("W/") for one in known]


def answered(request: HttpRequest, response: HttpResponse, document: T) -> T | HttpResponse:
    """Answer with the document and its ETag, or with 304 to a caller that has it."""
    current = tag(document)
    if is_known(request, current):
        return HttpResponse(status=304, headers={"ETag": current, "Cache-Control": KEPT})
    response["ETag"], response["Cache-Control"] = current, KEPT
    return document


@contextmanager
def held(request: HttpRequest, now: T, *tags: str) -> Iterator[T | None]:
    """Give what a change is to compare: ``now``, if the caller says that they saw it (If-Match), else None.

    ``tags`` are its ETags, if they are not its digest. Raises the problem 412 where they saw something else, and
    where somebody comes between this and the change.
    """
    given = request.headers.get("If-Match")
    if given is None:
        yield None
        return
    wanted = http.parse_etags(given)
    if not wanted:
        raise _failed("If-Match holds no ETag: send one as it was given, in its quotes, or *.")
    current = tags or (tag(now),)
    if "*" not in wanted and not set(current) & set(wanted):
        raise _failed(f"You saw {', '.join(wanted)}, and its ETag is {current[0]} now.")
    try:
        yield now
    except errors.Stale as stale:
        raise _failed(str(stale)) from stale


def _failed(what: str) -> problems.HttpProblem:
    return problems.HttpProblem(
        "precondition-failed", f"{what} Read it again, then repeat the change if you still want it."
    )
