"""Limits per caller: requests per minute, the size of a body, and a share of the database connections.

Each process counts separately: the limits protect the process, and a shared counter would cost a write per request.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from toolbelt import conf
from toolbelt.api import problems
from toolbelt.runtime import credentials

_FOR_AN_AGENT = re.compile(r"/api/v1/agents/[^/]+/(surface|calls|toolkits|sessions)(/|$)")


def agent_connections_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return a middleware that reserves some database connections for operators while it serves agents' requests."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not _FOR_AN_AGENT.match(request.path_info):
            return get_response(request)
        with credentials.for_an_agent():
            return get_response(request)

    return middleware


@dataclass(slots=True)
class _Bucket:
    """The requests that a caller has left at a point in time; it refills evenly."""

    left: float
    at: float


class Rates:
    """Rate limits by caller, in this process, as token buckets. A burst of a minute's requests is allowed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def take(self, caller: str, per_minute: int, count: int = 1) -> float:
        """Count a request. Return 0 if it is allowed, or the number of seconds to wait.

        ``count`` is 0 to only ask, and -1 to undo the last count, which is always allowed.
        """
        now = self._clock()
        with self._lock:
            bucket = self._buckets.setdefault(caller, _Bucket(float(per_minute), now))
            bucket.left = min(float(per_minute), bucket.left + (now - bucket.at) * per_minute / 60)
            bucket.at = now
            if bucket.left >= 1 or count < 0:
                bucket.left -= count
                return 0.0
            return (1 - bucket.left) * 60 / per_minute

    def forget(self) -> None:
        """Reset all limits. For tests."""
        with self._lock:
            self._buckets.clear()


rates = Rates()


def admit(request: HttpRequest, bearer: credentials.Bearer) -> None:
    """Raise HttpProblem if the caller sends too many requests or too large a body."""
    if conf.API_PER_MINUTE and (wait := rates.take(bearer.prefix, conf.API_PER_MINUTE)):
        seconds = math.ceil(wait)
        raise problems.HttpProblem(
            "too-many-requests",
            f"This token may send {conf.API_PER_MINUTE} requests a minute. Try again in {seconds} s.",
            headers={"Retry-After": str(seconds)},
        )
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        raise problems.HttpProblem("length-required", "Send the body with a Content-Length header.")
    content_length = request.headers.get("Content-Length", "")
    if content_length.isdecimal() and int(content_length) > conf.API_BODY_BYTES:
        raise problems.HttpProblem(
            "too-large",
            f"The body has {content_length} bytes; at most {conf.API_BODY_BYTES} are allowed. Send less at a time.",
        )
