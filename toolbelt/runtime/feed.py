"""Who has to hear that configuration changed? Whoever follows the agent, whichever process committed it.

::

    async with feed.changes("ada") as changes:
        ...  # ask what ada has
        async for _ in changes:
            ...  # something was committed that may concern ada: ask again

What may concern an agent is its own configuration and the catalog; whether it now has something else, the follower
finds out by asking. A turn stands for everything that was committed until then, so nobody ever has a backlog.

Each event loop has one watch over the database, for as long as somebody follows, and one statement reads for all who
do (`store.commits`). What ends by itself is a turn at the moment when it does. A database that is away leaves everyone
where they are: it is tried again, and what was missed is told then.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from toolbelt.store import clock, commits

# How long to let what is committed gather between two readings.
GAP = 0.02
# The longest to wait without looking whether somebody still follows.
IDLE = 1.0
# How long to leave a database alone that could not be read: at first, and in the end.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed: the catalog, and the own configuration of the agents with these keys, up to a revision."""

    revision: int
    catalog: bool = False
    agents: frozenset[str] = frozenset()

    def concern(self, agent: str | None) -> bool:
        """Say whether they may concern this agent; None stands for anyone."""
        return self.catalog or agent in self.agents or (agent is None and bool(self.agents))


class Following(AsyncIterator[Changes]):
    """Somebody's place in the feed, held from when it is made until it is closed or let go of.

    Without ``async with``, the first turn may come with nothing committed: when the watch begins. With it, what was
    committed before ``async with`` is not told.
    """

    def __init__(self, feed: Feed, agent: str | None) -> None:
        self._feed = feed
        self._agent = agent
        self._told: Changes | None = None
        self._rung = asyncio.Event()
        self._is_over = False

    async def __aenter__(self) -> Self:
        await self._feed.is_watching()
        self._told = None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __anext__(self) -> Changes:
        while self._told is None and not self._is_over:
            self._rung.clear()
            await self._rung.wait()
        told, self._told = self._told, None
        if self._is_over or told is None:
            raise StopAsyncIteration
        return told

    @property
    def revision(self) -> int:
        """Give the number of the last write that may have concerned the agent, as it was last read; 0: not read."""
        return self._feed.revision(self._agent)

    def close(self) -> None:
        """End it, in the middle of a turn or between two."""
        self._is_over = True
        self._rung.set()
        self._feed.leave(self)

    def tell(self, changes: Changes) -> None:
        """Add changes to those of the next turn, if they concern the agent."""
        if not changes.concern(self._agent):
            return
        if (had := self._told) is not None:
            changes = Changes(
                revision=changes.revision,
                catalog=changes.catalog or had.catalog,
                agents=changes.agents | had.agents,
            )
        self._told = changes
        self._rung.set()


class Feed:
    """The feed of one event loop."""

    def __init__(self) -> None:
        self._following: weakref.WeakSet[Following] = weakref.WeakSet()
        self._watching: asyncio.Task[None] | None = None
        self._was_tried = asyncio.Event()
        self._known: commits.State | None = None
        self._asked_at = clock.now()
        self._trouble = ""
        self._is_closed = False

    def follow(self, agent: str | None) -> Following:
        """Give a place in the feed, and see to it that somebody watches."""
        following = Following(self, agent)
        if self._is_closed:
            following.close()
            return following
        self._following.add(following)
        if self._watching is None:
            self._was_tried.clear()
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        return following

    def leave(self, following: Following) -> None:
        """Give a place back."""
        self._following.discard(following)

    async def is_watching(self) -> None:
        """Wait until the database was read for the first time, or could not be read."""
        if not self._is_closed:
            await self._was_tried.wait()

    def revision(self, agent: str | None) -> int:
        """Give the number of the last write of this agent or the catalog, or of anything."""
        if self._known is None:
            return 0
        return self._known.number if agent is None else self._known.revision(agent)

    def end(self) -> None:
        """End everyone's following, and the watch."""
        self._is_closed = True
        self._was_tried.set()
        for following in list(self._following):
            following.close()
        if self._watching is not None:
            self._watching.cancel()

    async def close(self) -> None:
        """End it, and let go of the database."""
        self.end()
        if self._watching is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        watch = commits.watch()
        if watch is None:
            _log.warning("changes not followed: no other connection sees this database")
            self._was_tried.set()
            return
        pause = FIRST_PAUSE
        try:
            while self._following:
                try:
                    self._tell(await watch.read())
                    pause = FIRST_PAUSE
                    await asyncio.sleep(GAP)
                    await watch.wait(self._until_next_end())
                except Exception as error:
                    if not isinstance(error, commits.Unreachable):
                        # Nobody expects it; those who follow are to hear of changes all the same.
                        _log.exception("changes not read")
                    self._say(str(error) or type(error).__name__)
                    self._was_tried.set()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self._was_tried.set()
            # First of all, so that whoever comes now begins another watch.
            self._watching = self._known = None
            await watch.close()

    def _tell(self, state: commits.State) -> None:
        self._say("")
        known, self._known = self._known, state
        if known is None:
            moved, is_another_catalog = frozenset(state.agents), True
        else:
            moved, is_another_catalog = state.moved_since(known), state.catalog != known.catalog
        agents = moved | self._ended(state)
        changes = Changes(revision=state.number, catalog=is_another_catalog, agents=agents)
        if changes.concern(None):
            for following in list(self._following):
                following.tell(changes)
        self._was_tried.set()

    def _ended(self, state: commits.State) -> frozenset[str]:
        """Name the agents of which something ended since this was last asked."""
        last, self._asked_at = self._asked_at, clock.now()
        return frozenset([key for at, key in state.ends if last < at <= self._asked_at])

    def _until_next_end(self) -> float:
        """Give the seconds until something ends, at most those after which to look around."""
        ends = self._known.ends if self._known is not None else ()
        first = next((at for at, _ in ends if at > self._asked_at), None)
        if first is None:
            return IDLE
        # A little longer: it is over at that moment, and clocks do not run alike.
        return min(IDLE, max(0.0, (first - clock.now()).total_seconds()) + 0.001)

    def _say(self, trouble: str) -> None:
        """Log that the database cannot be read, or can again: once, for the same may be so for a while."""
        if trouble and not self._trouble:
            _log.warning("changes not followed: the database cannot be read", error=trouble)
        elif self._trouble and not trouble:
            _log.info("changes followed again")
        self._trouble = trouble


_feeds: dict[asyncio.AbstractEventLoop, Feed] = {}


def changes(agent: str) -> Following:
    """Follow one agent, by its key: a turn for each commit, or several, of its configuration or the catalog."""
    return _here().follow(agent)


def anything() -> Following:
    """Follow everything: each turn says whose configuration was committed since the last."""
    return _here().follow(None)


def end() -> None:
    """End everyone's following on this event loop; those who come later find it ended."""
    _here().end()


async def close() -> None:
    """End everyone's following on this event loop, and let go of the database."""
    await _here().close()


def _here() -> Feed:
    loop = asyncio.get_running_loop()
    if loop not in _feeds:
        for other in [other for other in _feeds if other.is_closed()]:
            del _feeds[other]
        _feeds[loop] = Feed()
    return _feeds[loop]
