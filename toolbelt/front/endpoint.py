"""The MCP endpoint in front of Django, connected to the server's request ids, log, metrics and rate limits.

If the settings redirect to HTTPS, Django redirects requests that arrive over plain HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from toolbelt.api import limits
from toolbelt.front import access_log, answer_headers, ids
from toolbelt.mcp import exchanges, request_head
from toolbelt.mcp import server as mcp
from toolbelt.runtime.surfaces import prepared_answers

# The name of the view in metrics.
VIEW = "mcp"


def is_here(scope: Mapping[str, Any]) -> bool:
    """Return whether a request is for the endpoint."""
    if scope["type"] != "http" or not request_head.is_here(scope):
        return False
    return scope["scheme"] == "https" or not settings.SECURE_SSL_REDIRECT


def server(answers: prepared_answers.PreparedAnswers | None, log: access_log.AccessLog) -> mcp.Server:
    """Return the MCP endpoint of a server process."""

    def note(answered: exchanges.AnsweredRequest) -> None:
        log.add(
            access_log.LogEntry(
                answered,
                answered.status,
                answered.sent,
                answered.request_id,
                answered.bearer,
                time.time(),
                answered.seconds,
                VIEW,
            )
        )

    return mcp.Server(answers, exchanges.ServerContext(ids.new, answer_headers.of, note, limits.rates.take))
