"""Authentication of API tokens, in one query that writes nothing.

A token that is malformed, unknown, revoked or expired is rejected without a distinction. The last use of a token is
kept in the process and written by a background thread every minute, because requests never write and the exact time is
not needed. Only the first use of a token is written immediately, for the operator who waits to see it.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from dataclasses import dataclass
from typing import Literal

import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.core import api_tokens
from toolbelt.store import clock, credentials, databases

# The minimum time between two stored uses of a token, across all processes.
USE_INTERVAL = dt.timedelta(minutes=5)
WRITE_INTERVAL_SECONDS = 60.0

# Within it, connections count as an agent's, and must leave a few for operators.
for_an_agent = databases.for_an_agent

_log = structlog.get_logger(__name__)
_uses: dict[str, dt.datetime] = {}
# The valid tokens that were used recently, by prefix, each with the time (monotonic).
_valid: dict[str, tuple[credentials.StoredToken, float]] = {}
_stopping: threading.Event | None = None
_first_use = threading.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The owner of a token: one agent, or an operator (``user`` is their primary key) with a scope.

    ``name`` is their name in the audit log; no user has the name of an agent there. An MCP client that a person allowed
    to act as an agent is that agent, and ``user`` is the person, with the name ``person``.
    """

    kind: Literal["agent", "operator"]
    name: str
    prefix: str
    agent: str = ""
    scope: Literal["", "read", "write"] = ""
    user: int | None = None
    person: str = ""

    @property
    def is_client(self) -> bool:
        """Return whether this is an MCP client that signed in: its token is for the agent's MCP address only."""
        return self.kind == "agent" and self.user is not None


def recognize(text: str) -> Bearer | None:
    """Return the owner of a token, or None if it is not valid."""
    if not api_tokens.is_well_formed(text):
        return None
    return verify(text, credentials.find(api_tokens.prefix(text)))


def verify(text: str, stored: credentials.StoredToken | None) -> Bearer | None:
    """Return the owner of a token, given the token that is stored under its prefix, and record the use."""
    if stored is None:
        _valid.pop(api_tokens.prefix(text), None)
        return None
    if not api_tokens.matches_digest(stored.digest, text) or not is_still_valid(stored):
        return None
    return _bearer(stored)


def last_known(text: str) -> Bearer | None:
    """Return the owner of a recently used token, for when the database is unavailable.

    This grants nothing: known owners only get more details about the outage.
    """
    if not api_tokens.is_well_formed(text):
        return None
    stored, at = _valid.get(api_tokens.prefix(text), (None, 0.0))
    if stored is None or time.monotonic() - at > conf.STALE_SECONDS:
        return None
    is_valid = api_tokens.matches_digest(stored.digest, text) and stored.token.is_valid(clock.now())
    return _bearer(stored) if is_valid else None


def is_still_valid(stored: credentials.StoredToken) -> bool:
    """Return whether an authenticated token is still valid, and if so, record the use."""
    now = clock.now()
    if not stored.token.is_valid(now):
        _valid.pop(stored.token.prefix, None)
        return False
    _valid[stored.token.prefix] = stored, time.monotonic()
    if stored.token.last_used is None and stored.token.prefix not in _uses:
        _first_use.set()
    _uses[stored.token.prefix] = now
    return True


def write_uses() -> None:
    """Write the recorded uses of tokens to the database."""
    uses = {prefix: _uses.pop(prefix) for prefix in list(_uses)}
    if uses:
        credentials.record_uses(uses, USE_INTERVAL)


def start() -> None:
    """Write uses of tokens in a background thread, until :func:`stop`. For servers."""
    global _stopping
    if _stopping is None:
        _stopping = threading.Event()
        threading.Thread(
            target=_keep_writing, args=[_stopping], name="toolbelt-token-uses", daemon=True
        ).start()


def stop() -> None:
    """Stop the thread, and write the uses that are left."""
    global _stopping
    if _stopping is not None:
        _stopping.set()
        _stopping = None
        _first_use.set()
        _write_and_close()


def _bearer(stored: credentials.StoredToken) -> Bearer:
    token = stored.token
    if token.agent:
        # User names contain no colon.
        name = f"agent:{token.agent}" + (f" for {token.user}" if token.user else "")
        return Bearer(
            kind="agent",
            name=name,
            prefix=token.prefix,
            agent=token.agent,
            user=stored.user_id,
            person=token.user,
        )
    scope: Literal["read", "write"] = "write" if token.scope == "write" else "read"
    return Bearer(kind="operator", name=token.user, prefix=token.prefix, scope=scope, user=stored.user_id)


def _keep_writing(stopping: threading.Event) -> None:
    while not stopping.is_set():
        _first_use.wait(WRITE_INTERVAL_SECONDS)
        _first_use.clear()
        _write_and_close()


def _write_and_close() -> None:
    try:
        write_uses()
    except Exception:
        _log.exception("token uses not written")
    finally:
        connections.close_all()
