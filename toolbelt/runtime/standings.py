"""Who asks, and how do things stand for them? As one look at the database says; all else is kept in this process.

For what is answered on an event loop: nothing here takes a thread, or a second query. Whatever is not kept, or is not
to be answered so, is None: `access` and `snapshots` say what it is.

While the database cannot be read, `Standings.last_known` returns what the last look for the same token, agent and
session saw, for `TOOLBELT_STALE_SECONDS`, and only as long as nothing seen or committed by this process since says
otherwise. Tokens expire and grants end on time all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import structlog

from toolbelt import conf
from toolbelt.core import api_tokens, errors, resolution
from toolbelt.runtime import access, snapshots, surfaces
from toolbelt.store import commits, looks

# Of agents and sessions with one catalog.
MOST_STANDINGS = 8192
# Of tokens, agents and sessions: what their last look saw.
MOST_LAST_LOOKS = 16_384
# How long the database may take to answer another way before a last known state is given instead, and how long to
# leave it alone then, in seconds.
PATIENCE, PAUSE = 3.0, 1.0

T = TypeVar("T")

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


@dataclass(slots=True)
class _LastLook:
    """What the last look for a token, an agent and a session saw, when (monotonic), and after how many commits here."""

    seen: looks.Seen
    at: float
    commits: int


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
        self._last_looks: dict[Hashable, _LastLook] = {}
        # The newest that any look saw of a token, an agent or a session.
        self._newest: dict[Hashable, Hashable] = {}
        self._commits = 0
        self._alarm = commits.Alarm(self._note_commit)
        self._not_before = 0.0
        self._left: set[asyncio.Task[Any]] = set()

    async def of(self, asked: Asked) -> Standing | None:
        """Say how things stand for a question, if that is kept and whoever sent the token may know. One query."""
        if not asked.token.isascii() or not asked.token.isprintable():
            # No token is, and not every database takes what is not.
            return None
        commits = self._commits
        try:
            seen = await self._eyes.look(api_tokens.prefix(asked.token), asked.agent, asked.session)
        except looks.Unreachable as error:
            # Once, for the same may be so for a while, and each question finds out.
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("database not looked at from the event loop: Django answers", error=str(error))
            return None
        self._trouble = ""
        found = self._standing(asked, seen) if seen is not None else None
        self._note(asked, seen, found, commits)
        return found

    async def close(self) -> None:
        """Let go of the database."""
        await self._eyes.close()

    @property
    def is_blind(self) -> bool:
        """Return whether the database could not be looked at when it was last tried."""
        return bool(self._trouble)

    def last_known(self, asked: Asked) -> Standing | None:
        """Return how things stood when they were last looked at for this question; None where that may not be used."""
        last = self._last_looks.get(asked[:3])
        if last is None or last.commits != self._commits:
            return None
        if time.monotonic() - last.at > conf.STALE_SECONDS or not conf.STALE_SECONDS:
            return None
        if any(self._newest.get(name) != state for name, state in _states(asked, last.seen)):
            return None
        return self._standing(asked, last.seen)

    async def unless_away(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """Ask the database another way; None where it is away, or takes too long, or was found so a moment ago."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            return None

        async def asking() -> T:
            return await ask()

        task = loop.create_task(asking())
        self._left.add(task)
        task.add_done_callback(self._finished)
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if done:
            try:
                return task.result()
            except errors.Unavailable:
                pass
        self._not_before = loop.time() + PAUSE
        return None

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            # Whoever waited for it may have gone on without it.
            task.exception()

    def _note_commit(self) -> None:
        # What was seen before may no longer be so, and nobody can look.
        self._commits += 1

    def _note(self, asked: Asked, seen: looks.Seen | None, found: Standing | None, commits: int) -> None:
        """Keep what a look saw, for when the database cannot be looked at; of strangers nothing is kept."""
        key = asked[:3]
        if seen is None or found is None:
            self._last_looks.pop(key, None)
            states = _states(asked, seen) if seen is not None else [(_token_of(asked), None)]
            self._newest.update({name: state for name, state in states if name in self._newest})
            return
        last = self._last_looks.get(key)
        if last is not None and last.seen is seen:
            last.at, last.commits = time.monotonic(), commits
            return
        if len(self._last_looks) >= MOST_LAST_LOOKS:
            self._last_looks.clear()
            self._newest.clear()
        self._last_looks[key] = _LastLook(seen, time.monotonic(), commits)
        self._newest.update(_states(asked, seen))

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


def _token_of(asked: Asked) -> Hashable:
    return "token", api_tokens.prefix(asked.token)


def _states(asked: Asked, seen: looks.Seen) -> Iterator[tuple[Hashable, Hashable]]:
    """List what a look saw of everything that decides about an answer, each under its name."""
    token, look = seen
    yield _token_of(asked), (token.digest, token.is_active, token.token.revoked, token.token.expires)
    yield "catalog", look.catalog_stamp
    yield ("agent", look.agent_id), look.agent_stamp
    yield ("session", look.agent_id, asked.session), (look.loadout, look.state)


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
