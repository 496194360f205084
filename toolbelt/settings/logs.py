"""Logging: what is logged, in which format, and what is removed.

Everything is written to standard error by structlog, including Django's and uvicorn's messages: one JSON object per
line in production, and readable lines elsewhere and on a terminal.
"""

import json
import logging
import sys
from typing import Any

import structlog
from structlog import dev, processors, stdlib, typing

from toolbelt.core import api_tokens, secret_texts
from toolbelt.core.imported import cleaning
from toolbelt.runtime import masking

_ENCODER = json.JSONEncoder(default=repr)


class Formatter(stdlib.ProcessorFormatter):
    """structlog's formatter, which finally masks every known secret, also in tracebacks and arguments.

    It writes to a terminal, so control characters are written as ``[U+001B]``: texts of others must not control it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a readable line."""
        return cleaning.escape_hidden(masking.mask(super().format(record)))


class JsonFormatter(stdlib.ProcessorFormatter):
    """The same for JSON. Lines that are already encoded are not encoded again."""

    # Callers with many lines may pass them in one record.
    takes_lines = True

    def format(self, record: logging.LogRecord) -> str:
        """Return a JSON line, or the given encoded lines."""
        lines = getattr(record, "lines", None)
        if lines is None:
            return masking.mask_json(super().format(record))
        whole = "\n".join(lines)
        return whole if masking.mask(whole) is whole else "\n".join(map(masking.mask_json, lines))


def withhold(logger: Any, name: str, event: typing.EventDict) -> typing.EventDict:
    """Remove secrets from a log entry: values of keys that name a secret, and query strings."""
    for key in event:
        if secret_texts.is_name(key):
            event[key] = "[withheld]"
    if isinstance(event.get("request"), str):
        # The path may contain a token.
        event["request"] = api_tokens.redact(event["request"].partition("?")[0])
    return event


def _encode(entry: typing.EventDict, **options: Any) -> str:
    """Encode an entry with a shared encoder, because `json.dumps` would create one per line."""
    return _ENCODER.encode(entry)


def is_json(environment: str) -> bool:
    """Return whether lines are JSON: in production, unless a person reads them on a terminal."""
    return environment == "production" and not sys.stderr.isatty()


def configure(*, level: str, as_json: bool) -> dict[str, Any]:
    """Configure structlog, and return the matching LOGGING for Django."""
    # Log lines contain neither thread nor process, and finding them out would take half of the time of each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    shared: list[typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        stdlib.add_logger_name,
        stdlib.add_log_level,
        stdlib.PositionalArgumentsFormatter(),
        processors.TimeStamper(fmt="iso", utc=True),
        processors.StackInfoRenderer(),
        withhold,
    ]
    # Plain tracebacks only: the other kinds show local variables, which may contain secrets.
    rendering: list[typing.Processor] = (
        [processors.format_exc_info, processors.JSONRenderer(serializer=_encode)]
        if as_json
        else [dev.ConsoleRenderer(colors=False, exception_formatter=dev.plain_traceback)]
    )
    structlog.configure(
        processors=[stdlib.filter_by_level, *shared, stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "entry": {
                "()": JsonFormatter if as_json else Formatter,
                "processors": [stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "entry"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "propagate": True},
            # django-structlog logs each request. Django's own line would contain the query string.
            "django.request": {"handlers": [], "level": "CRITICAL"},
            "django.server": {"handlers": [], "level": "CRITICAL"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL"},
            # Anyone can cause any number of these, so they are logged in one line without a traceback.
            "django.security.DisallowedHost": {"handlers": [], "level": "CRITICAL", "propagate": False},
            # They would log every request with its whole address, and the responses of unknown servers. Plugins log
            # what matters themselves.
            **{name: {"level": "CRITICAL"} for name in ("client", "mcp")},
            **{name: {"level": "WARNING"} for name in ("httpx", "httpx2", "httpcore", "httpcore2")},
            # At DEBUG, they would log codes and tokens.
            **{name: {"level": "WARNING"} for name in ("allauth", "oauthlib", "oauth2_provider", "urllib3")},
            "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "uvicorn.error": {"handlers": [], "propagate": True},
        },
    }
