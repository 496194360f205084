"""What is logged, in which form, and what is kept out of it?

Everything goes to standard error through structlog, Django's and uvicorn's own lines too: one JSON object a line
in production, readable lines elsewhere.
"""

import json
import logging
import re
import sys
from typing import Any

import structlog
from structlog import dev, processors, stdlib, typing

from toolbelt.core import api_tokens
from toolbelt.runtime import masking

SECRET_NAMES = re.compile(
    r"(^|[_-])(authorization|cookie|passwo?r?d|secret|secret_key|api_key|token|sessionid)$", re.IGNORECASE
)

_ENCODER = json.JSONEncoder(default=repr)


class Formatter(stdlib.ProcessorFormatter):
    """structlog's, with every known secret taken out at the very end: of tracebacks and arguments, whoever logs."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a line for people."""
        return masking.mask(super().format(record))


class JsonFormatter(stdlib.ProcessorFormatter):
    """The same for JSON; but lines that come written are not written again."""

    # Who has many lines to write may hand them over in one record.
    takes_lines = True

    def format(self, record: logging.LogRecord) -> str:
        """Write a line, or give those that come written."""
        lines = getattr(record, "lines", None)
        if lines is None:
            return masking.mask_json(super().format(record))
        whole = "\n".join(lines)
        return whole if masking.mask(whole) is whole else "\n".join(map(masking.mask_json, lines))


def withhold(logger: Any, name: str, event: typing.EventDict) -> typing.EventDict:
    """Keep out of the log what is nobody's to read: values with a secret's name, and query strings."""
    for key in event:
        if SECRET_NAMES.search(key):
            event[key] = "[withheld]"
    if isinstance(event.get("request"), str):
        # Somebody may have put a token into the address.
        event["request"] = api_tokens.withheld(event["request"].partition("?")[0])
    return event


def _written(entry: typing.EventDict, **options: Any) -> str:
    """Write an entry with an encoder that is made once, where `json.dumps` would make one for each line."""
    return _ENCODER.encode(entry)


def configure(*, level: str, as_json: bool) -> dict[str, Any]:
    """Set structlog up, and return Django's LOGGING to match."""
    # No line says which thread or process wrote it, and finding out would cost every line about half of what it costs.
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
    # Both print plain tracebacks: the other kinds show local variables, and secrets are among those.
    rendering: list[typing.Processor] = (
        [processors.format_exc_info, processors.JSONRenderer(serializer=_written)]
        if as_json
        else [dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=dev.plain_traceback)]
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
            # A request is logged once, by django-structlog; Django's own line would hold the query string.
            "django.request": {"handlers": [], "level": "CRITICAL"},
            "django.server": {"handlers": [], "level": "CRITICAL"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL"},
            # One line says it all, and anyone can send as many as they like: no traceback for each.
            "django.security.DisallowedHost": {"handlers": [], "level": "CRITICAL", "propagate": False},
            # They tell of every request with its whole address, and of what strangers answered: plugins tell of
            # what matters of that themselves.
            **{name: {"level": "CRITICAL"} for name in ("client", "mcp")},
            **{name: {"level": "WARNING"} for name in ("httpx", "httpx2", "httpcore", "httpcore2")},
            "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "uvicorn.error": {"handlers": [], "propagate": True},
        },
    }
