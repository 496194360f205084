"""Where is the endpoint for MCP clients, and what is around it? In front of Django, as the agents' questions are.

Its requests are named, counted, logged and limited as all others are. Where the settings lead everyone to HTTPS, Django
leads those who come over plain HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from toolbelt.api import limits
from toolbelt.front import ids, notes
from toolbelt.mcp import exchanges, heads
from toolbelt.mcp import server as mcp
from toolbelt.runtime import ready

# What its requests are counted under.
VIEW = "mcp"


def is_here(scope: Mapping[str, Any]) -> bool:
    """Say whether a request is for the endpoint."""
    if scope["type"] != "http" or not heads.is_here(scope):
        return False
    return scope["scheme"] == "https" or not settings.SECURE_SSL_REDIRECT


def server(answers: ready.Answers | None, taken: notes.Notes) -> mcp.Server:
    """Make the endpoint of a server process."""

    def note(answered: exchanges.Answered) -> None:
        taken.take(
            notes.Note(
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

    return mcp.Server(answers, exchanges.Surroundings(ids.new, note, limits.rates.take))
