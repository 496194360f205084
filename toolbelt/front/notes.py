"""What is counted and logged of a request that Django does not see? The same as of one that it does.

It is noted when the answer is sent, and written a moment later, for all answers of that moment: one by one, as
django-prometheus and django-structlog write it, it would cost more than the answers. Tests hold the two against each
other.
"""

from __future__ import annotations

import asyncio
import collections
import datetime as dt
import functools
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from django import urls
from django.conf import settings
from django_prometheus import middleware

from toolbelt.core import api_tokens
from toolbelt.front import requests

# How long a note may wait to be written; what a process that is killed leaves unwritten.
SECONDS = 0.05
# Of a longer path nothing is kept: whoever sends many fills no memory.
LONGEST_KEPT = 400

_log = logging.getLogger("django_structlog.middlewares.request")


class Request(Protocol):
    """What has to be known of a request. ``length`` is that of its body."""

    @property
    def method(self) -> str: ...
    @property
    def scheme(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def address(self) -> str | None: ...
    @property
    def length(self) -> int: ...


class Note(NamedTuple):
    """What is to be written of a request. ``at`` is when it was answered, ``seconds`` how long that took.

    ``view`` is what it is counted under; empty: the view that would have answered in Django.
    """

    request: Request
    status: int
    length: int
    request_id: str
    bearer: str
    at: float
    seconds: float
    view: str = ""


class Notes:
    """The notes of one process that are still to be written."""

    def __init__(self) -> None:
        self._taken: list[Note] = []

    def take(self, note: Note) -> None:
        """Keep a note, and see to it that it is written."""
        if not self._taken:
            asyncio.get_running_loop().call_later(SECONDS, self.write)
        self._taken.append(note)

    def write(self) -> None:
        """Write what was kept, if anything was."""
        taken, self._taken = self._taken, []
        if taken and _log.isEnabledFor(logging.INFO):
            _write_lines(taken)
        for note in taken:
            _count_size_and_time(note)
        kinds = collections.Counter(
            [(one.request.scheme, one.request.method, one.status, one.view) for one in taken]
        )
        for kind, many in kinds.items():
            for add in _counters(*kind):
                add(many)


def is_wanted_whole() -> bool:
    """Say whether more is logged of a request than one line: then Django does all of it."""
    return _log.isEnabledFor(logging.DEBUG)


def _write_lines(taken: list[Note]) -> None:
    """Hand on a line for each note: all of them in one record, if whoever writes them takes lines of JSON."""
    if all(getattr(handler.formatter, "takes_lines", False) for handler in _handlers()):
        _log.handle(_record(_entry(taken[0]), lines=[_line(note) for note in taken]))
        return
    for note in taken:
        _log.handle(_record(_entry(note)))


def _entry(note: Note) -> dict[str, Any]:
    return {**_in_common(*_kind(note)), "request_id": note.request_id, "timestamp": _timestamp(note.at)}


def _line(note: Note) -> str:
    """Write a note as JSON: what it has in common with others is written once for all of them."""
    written = _written if len(note.request.path) <= LONGEST_KEPT else _written.__wrapped__
    # Neither of the two has a character that JSON would have escaped.
    own = f', "request_id": "{note.request_id}", "timestamp": "{_timestamp(note.at)}"}}'
    return written(*_kind(note)) + own


def _kind(note: Note) -> tuple[int, str, str, str | None, str]:
    request = note.request
    return note.status, request.method, request.path, request.address, note.bearer


def _in_common(status: int, method: str, path: str, address: str | None, bearer: str) -> dict[str, Any]:
    """Say of a request what others say, too."""
    return {
        "code": status,
        # Without the query, and without a token that somebody put into the address: as `settings.logs` leaves it.
        "request": api_tokens.withheld(f"{method} {path}"),
        "event": "request_finished",
        "user_id": None,
        "ip": address,
        "bearer": bearer,
        "logger": _log.name,
        "level": "info",
    }


@functools.lru_cache(1024)
def _written(status: int, method: str, path: str, address: str | None, bearer: str) -> str:
    """Begin a line."""
    return json.dumps(_in_common(status, method, path, address, bearer)).removesuffix("}")


def _timestamp(at: float) -> str:
    second, micros = divmod(int(at * 1e6), 1_000_000)
    return f"{_second(second)}.{micros:06}Z"


@functools.lru_cache(4)
def _second(since_the_epoch: int) -> str:
    return dt.datetime.fromtimestamp(since_the_epoch, dt.UTC).isoformat()[:-6]


def _record(entry: dict[str, Any], lines: list[str] | None = None) -> logging.LogRecord:
    record = logging.LogRecord(_log.name, logging.INFO, "", 0, entry, None, None)
    record.lines = lines
    # For structlog's own formatter.
    record._logger, record._name = _log, "info"
    return record


def _handlers() -> Iterator[logging.Handler]:
    """Give everyone who will be handed a line."""
    logger: logging.Logger | None = _log
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _count_size_and_time(note: Note) -> None:
    metrics = middleware.Metrics.get_instance()
    metrics.requests_body_bytes.observe(note.request.length)
    metrics.responses_body_bytes.observe(note.length)
    metrics.requests_latency_before.observe(note.seconds)
    _seconds(note.request.method, note.view)(note.seconds)


@functools.cache
def _view() -> str:
    """Name the view that would have answered; all surfaces have one."""
    return urls.resolve(requests.EXAMPLE).view_name


@functools.cache
def _seconds(method: str, view: str) -> Callable[[float], None]:
    labelled = middleware.Metrics.get_instance().requests_latency_by_view_method
    observe: Callable[[float], None] = labelled.labels(view=view or _view(), method=method).observe
    return observe


@functools.cache
def _counters(scheme: str, method: str, status: int, view: str) -> tuple[Callable[[float], None], ...]:
    metrics = middleware.Metrics.get_instance()
    labels = {"view": view or _view(), "method": method}
    return (
        metrics.requests_total.inc,
        metrics.responses_total.inc,
        metrics.requests_by_method.labels(method=method).inc,
        metrics.requests_by_transport.labels(transport=scheme).inc,
        metrics.requests_by_view_transport_method.labels(transport=scheme, **labels).inc,
        metrics.responses_by_status.labels(status=str(status)).inc,
        metrics.responses_by_status_view_method.labels(status=str(status), **labels).inc,
        metrics.responses_by_charset.labels(charset=settings.DEFAULT_CHARSET).inc,
    )
