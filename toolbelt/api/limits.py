"""How much one caller may ask: so many requests a minute, bodies of so many bytes, a share of the connections.

Each process counts for itself: what is protected is the process, and a count that all of them share would cost every
question a write.
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
from toolbelt.runtime import access

_FOR_AN_AGENT = re.compile(r"/api/v1/agents/[^/]+/(surface|calls|toolkits|sessions)(/|$)")


def agents_share(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Leave some database connections to operators when an agent's endpoint is asked (a middleware)."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not _FOR_AN_AGENT.match(request.path_info):
            return get_response(request)
        with access.for_an_agent():
            return get_response(request)

    return middleware


@dataclass(slots=True)
class _Bucket:
    """What a caller has left, as of a moment; it fills up again evenly."""

    left: float
    at: float


class Rates:
    """How many requests each caller has left in this process. A minute's worth may come at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def take(self, caller: str, per_minute: int) -> float:
        """Take one request; give 0, or how many seconds to wait for the next one."""
        now = self._clock()
        with self._lock:
            bucket = self._buckets.setdefault(caller, _Bucket(float(per_minute), now))
            bucket.left = min(float(per_minute), bucket.left + (now - bucket.at) * per_minute / 60)
            bucket.at = now
            if bucket.left >= 1:
                bucket.left -= 1
                return 0.0
            return (1 - bucket.left) * 60 / per_minute

    def forget(self) -> None:
        """Let everyone begin anew. For tests."""
        with self._lock:
            self._buckets.clear()


rates = Rates()


def admit(request: HttpRequest, bearer: access.Bearer) -> None:
    """Let the request in, or raise the problem that says what is too much, and when or how to come again."""
    if conf.API_PER_MINUTE and (wait := rates.take(bearer.prefix, conf.API_PER_MINUTE)):
        seconds = math.ceil(wait)
        raise problems.HttpProblem(
            "too-many-requests",
            f"This token may make {conf.API_PER_MINUTE} requests a minute: wait {seconds} s.",
            headers={"Retry-After": str(seconds)},
        )
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        raise problems.HttpProblem("length-required", "Send the body whole, with its Content-Length.")
    sent = request.headers.get("Content-Length", "")
    if sent.isdecimal() and int(sent) > conf.API_BODY_BYTES:
        raise problems.HttpProblem(
            "too-large",
            f"The body has {sent} bytes, and {conf.API_BODY_BYTES} may be sent: send less at a time.",
        )
