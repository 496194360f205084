"""The log and the metrics of requests that Django does not see, equal to those of Django's requests.

Entries are collected when a response is sent, and written together a moment later: written individually, as
django-prometheus and django-structlog do, they would cost more than the responses. Tests compare the two.
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

from django.conf import settings
from django_prometheus import middleware

from toolbelt.core import api_tokens

# How long an entry may wait to be written. A process that is killed loses the entries of this time.
SECONDS = 0.05
# Longer paths are not cached, so that many of them cannot fill the memory.
MAX_KEPT_LENGTH = 400

_log = logging.getLogger("django_structlog.middlewares.request")


class Request(Protocol):
    """The fields of a request that are logged. ``length`` is that of its body."""

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


class LogEntry(NamedTuple):
    """A log entry of a request. ``at`` is when it was answered, ``seconds`` how long that took.

    ``view`` is the name of the view in metrics.
    """

    request: Request
    status: int
    length: int
    request_id: str
    bearer: str
    at: float
    seconds: float
    view: str


class AccessLog:
    """The entries of this process that are not written yet."""

    def __init__(self) -> None:
        self._pending: list[LogEntry] = []

    def add(self, entry: LogEntry) -> None:
        """Add an entry, to be written soon."""
        if not self._pending:
            asyncio.get_running_loop().call_later(SECONDS, self.write)
        self._pending.append(entry)

    def write(self) -> None:
        """Write all pending entries."""
        pending, self._pending = self._pending, []
        if pending and _log.isEnabledFor(logging.INFO):
            _write_lines(pending)
        for entry in pending:
            _count_size_and_time(entry)
        kinds = collections.Counter(
            [(entry.request.scheme, entry.request.method, entry.status, entry.view) for entry in pending]
        )
        for kind, count in kinds.items():
            for add in _counters(*kind):
                add(count)


def is_verbose() -> bool:
    """Return whether more than one line is logged per request. Django then answers all requests."""
    return _log.isEnabledFor(logging.DEBUG)


def _write_lines(pending: list[LogEntry]) -> None:
    """Log a line for each entry: all in one record, if the handlers' formatters support lines of JSON."""
    if all(getattr(handler.formatter, "takes_lines", False) for handler in _handlers()):
        _log.handle(_record(_entry(pending[0]), lines=[_line(entry) for entry in pending]))
        return
    for entry in pending:
        _log.handle(_record(_entry(entry)))


def _entry(note: LogEntry) -> dict[str, Any]:
    return {**_in_common(*_kind(note)), "request_id": note.request_id, "timestamp": _timestamp(note.at)}


def _line(note: LogEntry) -> str:
    """Return an entry as JSON. The part that entries have in common is cached."""
    written = _written if len(note.request.path) <= MAX_KEPT_LENGTH else _written.__wrapped__
    # Neither contains characters that JSON must escape.
    request_fields = f', "request_id": "{note.request_id}", "timestamp": "{_timestamp(note.at)}"}}'
    return written(*_kind(note)) + request_fields


def _kind(note: LogEntry) -> tuple[int, str, str, str | None, str]:
    request = note.request
    return note.status, request.method, request.path, request.address, note.bearer


def _in_common(status: int, method: str, path: str, address: str | None, bearer: str) -> dict[str, Any]:
    """Return the fields that entries have in common."""
    return {
        "code": status,
        # Without the query, and with tokens in the path redacted, like `settings.logs`.
        "request": api_tokens.redact(f"{method} {path}"),
        "event": "request_finished",
        "user_id": None,
        "ip": address,
        "bearer": bearer,
        "logger": _log.name,
        "level": "info",
    }


@functools.lru_cache(1024)
def _written(status: int, method: str, path: str, address: str | None, bearer: str) -> str:
    """Return the beginning of a line."""
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
    """Yield all handlers that will receive a record."""
    logger: logging.Logger | None = _log
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _count_size_and_time(note: LogEntry) -> None:
    metrics = middleware.Metrics.get_instance()
    metrics.requests_body_bytes.observe(note.request.length)
    metrics.responses_body_bytes.observe(note.length)
    metrics.requests_latency_before.observe(note.seconds)
    _seconds(note.request.method, note.view)(note.seconds)


@functools.cache
def _seconds(method: str, view: str) -> Callable[[float], None]:
    labelled = middleware.Metrics.get_instance().requests_latency_by_view_method
    observe: Callable[[float], None] = labelled.labels(view=view, method=method).observe
    return observe


@functools.cache
def _counters(scheme: str, method: str, status: int, view: str) -> tuple[Callable[[float], None], ...]:
    metrics = middleware.Metrics.get_instance()
    labels = {"view": view, "method": method}
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
