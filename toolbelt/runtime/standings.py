"""Who asks, and how do things stand for them? As one look at the database says; all else is kept in this process.

For what is answered on an event loop: nothing here takes a thread, or a second query. Whatever is not kept, or is not
to be answered so, is None: `access` and `snapshots` say what it is.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import structlog

from toolbelt.core import api_tokens, resolution
from toolbelt.runtime import access, snapshots, surfaces
from toolbelt.store import looks

# Of agents and sessions with one catalog.
MOST_STANDINGS = 8192

_log = structlog.get_logger(__name__)


class Asked(NamedTuple):
    """Whose surface is asked for, and with which token; sound in itself."""

    token: str
    agent: str
    session: str | None = None
    request_id: str | None = None
    subagent: str | None = None


class Standing(NamedTuple):
    """Who asks and how things stand, as was seen; and what the surface is kept under that follows."""

    seen: looks.Seen
    bearer: access.Bearer
    snapshot: resolution.Snapshot
    place: tuple[str, surfaces.Slot]


class Standings:
    """How things stand, as far as it is kept. For one event loop.

    ``derived`` is for what follows from the standings: it goes when they go.
    """

    def __init__(self, eyes: looks.Eyes) -> None:
        self._eyes = eyes
        self._catalog = ""
        self._standings: dict[Hashable, Standing] = {}
        self._trouble = ""
        self.derived: dict[Hashable, Any] = {}

    async def of(self, asked: Asked) -> Standing | None:
        """Say how things stand for a question, if that is kept and whoever sent the token may know. One query."""
        if not asked.token.isascii() or not asked.token.isprintable():
            # No token is, and not every database takes what is not.
            return None
        seen = await self._look(asked)
        return self._standing(asked, seen) if seen is not None else None

    async def close(self) -> None:
        """Let go of the database."""
        await self._eyes.close()

    async def _look(self, asked: Asked) -> looks.Seen | None:
        try:
            seen = await self._eyes.look(api_tokens.prefix(asked.token), asked.agent, asked.session)
        except looks.Unreachable as error:
            # Once, for the same may be so for a while, and each question finds out.
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("database not looked at from the event loop: Django answers", error=str(error))
            return None
        self._trouble = ""
        return seen

    def _standing(self, asked: Asked, seen: looks.Seen) -> Standing | None:
        """Say how things stand for a question: as they stood for the last one, if the same was seen."""
        slot = (asked.token, asked.agent, asked.session, asked.subagent)
        known = self._standings.get(slot)
        named = may_be_named(asked.request_id, seen.look)
        if known is not None and known.seen == seen and not named and not snapshots.is_over(known.snapshot):
            return known if access.admits(seen.token) else None
        bearer = access.admit(asked.token, seen.token)
        if bearer is None or (bearer.kind == "agent" and bearer.agent != asked.agent):
            return None
        snapshot = snapshots.known(seen.look, asked.session, asked.request_id, asked.subagent)
        if snapshot is None or not _may_ask_for(asked.subagent, bearer, snapshot):
            return None
        place = (seen.look.catalog_stamp, surfaces.slot(snapshot, seen.look.agent_stamp))
        found = Standing(seen, bearer, snapshot, place)
        if not may_be_named(asked.request_id, seen.look):
            self._remember(slot, found)
        return found

    def _remember(self, slot: Hashable, standing: Standing) -> None:
        if standing.place[0] != self._catalog or len(self._standings) >= MOST_STANDINGS:
            # They hold on to their catalog, which is large: no longer than it is the current one.
            self._standings.clear()
            self.derived.clear()
            self._catalog = standing.place[0]
        self._standings[slot] = standing


def may_be_named(request_id: str | None, look: looks.Look) -> bool:
    """Say whether the session's state may name the request, which may have another surface than all others then.

    Only a backslash can hide a name in the text of the state.
    """
    return (
        request_id is not None and look.state is not None and (request_id in look.state or "\\" in look.state)
    )


def _may_ask_for(subagent: str | None, bearer: access.Bearer, snapshot: resolution.Snapshot) -> bool:
    """Say whether the bearer may ask for a subagent of this kind, as `access.check_subagent` does."""
    return subagent is None or bearer.kind == "operator" or subagent in snapshot.agent.subagent_kinds
