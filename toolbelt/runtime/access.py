"""Whose token is this? Asked at every door that is open to the network, in one query that writes nothing.

A token that is malformed, unknown, revoked or over is no token: whoever sends it learns no more than that. When a
token was last used is kept in the process and written by a thread of its own, some minutes apart: a question never
writes, and nobody needs that figure to the second.
"""

from __future__ import annotations

import atexit
import datetime as dt
import threading
import time
from dataclasses import dataclass
from typing import Literal

import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.core import api_tokens, errors
from toolbelt.runtime import snapshots
from toolbelt.store import access, clock, databases

# How far apart two notes of one token's use are, whichever process makes them.
APART = dt.timedelta(minutes=5)
SECONDS_BETWEEN_NOTES = 60.0

# Within it, connections are taken on behalf of an agent: all but a few that are kept for operators.
for_an_agent = databases.for_an_agent

_log = structlog.get_logger(__name__)
_uses: dict[str, dt.datetime] = {}
# The valid tokens that were seen lately, by prefix, each with the time (monotonic).
_valid: dict[str, tuple[access.Kept, float]] = {}
_noting = threading.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Who sent a token: one agent, or an operator (``user`` is the number of their row) within a scope.

    ``name`` is what the audit calls them; no user is named like an agent there.
    """

    kind: Literal["agent", "operator"]
    name: str
    prefix: str
    agent: str = ""
    scope: Literal["", "read", "write"] = ""
    user: int | None = None


def recognize(text: str) -> Bearer | None:
    """Give who sent this token; None for whatever opens nothing."""
    if not api_tokens.is_well_formed(text):
        return None
    return admit(text, access.find(api_tokens.prefix(text)))


def admit(text: str, kept: access.Kept | None) -> Bearer | None:
    """Give who sent this token, when ``kept`` is what was found under its prefix; note that it was used."""
    if kept is None:
        _valid.pop(api_tokens.prefix(text), None)
        return None
    if not api_tokens.is_digest_of(kept.digest, text) or not admits(kept):
        return None
    return _bearer(kept)


def last_known(text: str) -> Bearer | None:
    """Return who sent this token as far as was known lately, for when the database cannot be asked.

    It opens nothing: who is known is told more than a stranger, and that is all.
    """
    if not api_tokens.is_well_formed(text):
        return None
    kept, at = _valid.get(api_tokens.prefix(text), (None, 0.0))
    if kept is None or time.monotonic() - at > conf.STALE_SECONDS:
        return None
    is_valid = api_tokens.is_digest_of(kept.digest, text) and kept.token.is_valid(clock.now())
    return _bearer(kept) if is_valid else None


def admits(kept: access.Kept) -> bool:
    """Say whether a token that was recognised still opens anything; note that it was used, if so."""
    now = clock.now()
    if not kept.is_active or not kept.token.is_valid(now):
        _valid.pop(kept.token.prefix, None)
        return False
    _valid[kept.token.prefix] = kept, time.monotonic()
    _uses[kept.token.prefix] = now
    return True


def check_subagent(bearer: Bearer, agent: str, subagent: str | None) -> None:
    """Refuse a subagent of a kind that the agent's own token may not ask for. Operators may ask for any."""
    if subagent is None or bearer.kind == "operator":
        return
    snapshot, _ = snapshots.take(agent, subagent=subagent)
    kinds = snapshot.agent.subagent_kinds
    if subagent not in kinds:
        may = f"it may ask for {', '.join(kinds)}" if kinds else "it may ask for none"
        raise errors.Refused(
            f"{agent} may not ask for a subagent of the kind {subagent}: {may}."
            " An operator can change that, in its subagent_kinds."
        )


def session_loadouts(bearer: Bearer, agent: str) -> tuple[str, ...] | None:
    """Name the loadouts that this bearer may equip a session of the agent with; None: any."""
    if bearer.kind == "operator":
        return None
    snapshot, _ = snapshots.take(agent)
    return snapshot.agent.session_loadouts


def note() -> None:
    """Write down which tokens were used since the last time."""
    seen = {prefix: _uses.pop(prefix) for prefix in list(_uses)}
    if seen:
        access.used(seen, APART)


def start() -> None:
    """Note from now on what is used, in a thread of its own. For servers; begun once, it goes on."""
    if not _noting.is_set():
        _noting.set()
        threading.Thread(target=_keep_noting, name="toolbelt-token-uses", daemon=True).start()
        atexit.register(_note_and_close)


def _bearer(kept: access.Kept) -> Bearer:
    token = kept.token
    if kept.user_id is None:
        # No user name holds a colon.
        return Bearer(kind="agent", name=f"agent:{token.agent}", prefix=token.prefix, agent=token.agent)
    scope: Literal["read", "write"] = "write" if token.scope == "write" else "read"
    return Bearer(kind="operator", name=token.user, prefix=token.prefix, scope=scope, user=kept.user_id)


def _keep_noting() -> None:
    pause = threading.Event()
    while not pause.wait(SECONDS_BETWEEN_NOTES):
        _note_and_close()


def _note_and_close() -> None:
    try:
        note()
    except Exception:
        _log.exception("use of tokens not noted")
    finally:
        connections.close_all()
