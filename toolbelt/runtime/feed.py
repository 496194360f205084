"""Followers of an agent's configuration, which are notified of each change, whichever process committed it.

::

    async with feed.changes("ada") as changes:
        ...  # read ada's configuration
        async for _ in changes:
            ...  # something was committed that may concern ada: read it again

A change of the agent's own configuration or of the catalog may concern it; the follower compares to find out. One
notification covers everything that was committed before it, so there is never a backlog.

Each event loop watches the database as long as it has followers, with one statement for all of them (`store.commits`).
When a grant expires or a block ends, followers are notified as well. While the database is unavailable, reading is
retried, and missed changes are notified afterwards.
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

# The minimum time between two reads, so that commits in quick succession are read together.
GAP = 0.02
# How often to check whether there are still followers.
IDLE = 1.0
# The first and the maximum pause after the database could not be read.
FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes up to a revision: whether the catalog changed, and the keys of agents whose configuration changed."""

    revision: int
    catalog: bool = False
    agents: frozenset[str] = frozenset()

    def concern(self, agent: str | None) -> bool:
        """Return whether the changes may concern this agent, or any agent if it is None."""
        return self.catalog or agent in self.agents or (agent is None and bool(self.agents))


class Following(AsyncIterator[Changes]):
    """A follower of the feed, from its creation until it is closed or garbage-collected.

    Without ``async with``, the first notification may come without a commit, when the watch starts. With it, commits
    before ``async with`` are not notified.
    """

    def __init__(self, feed: Feed, agent: str | None) -> None:
        self._feed = feed
        self._agent = agent
        self._changes: Changes | None = None
        self._has_news = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await self._feed.is_watching()
        self._changes = None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __anext__(self) -> Changes:
        while self._changes is None and not self._is_closed:
            self._has_news.clear()
            await self._has_news.wait()
        changes, self._changes = self._changes, None
        if self._is_closed or changes is None:
            raise StopAsyncIteration
        return changes

    @property
    def revision(self) -> int:
        """Return the number of the last known write that may concern the agent; 0 if none was read."""
        return self._feed.revision(self._agent)

    def close(self) -> None:
        """Stop following, at any time."""
        self._is_closed = True
        self._has_news.set()
        self._feed.leave(self)

    def notify(self, changes: Changes) -> None:
        """Add changes to the next notification, if they concern the agent."""
        if not changes.concern(self._agent):
            return
        if (earlier := self._changes) is not None:
            changes = Changes(
                revision=changes.revision,
                catalog=changes.catalog or earlier.catalog,
                agents=changes.agents | earlier.agents,
            )
        self._changes = changes
        self._has_news.set()


class Feed:
    """The feed of one event loop."""

    def __init__(self) -> None:
        self._following: weakref.WeakSet[Following] = weakref.WeakSet()
        self._watching: asyncio.Task[None] | None = None
        self._was_tried = asyncio.Event()
        self._state: commits.State | None = None
        self._asked_at = clock.now()
        self._trouble = ""
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Return whether the feed has ended."""
        return self._is_closed

    def follow(self, agent: str | None) -> Following:
        """Add a follower, and watch the database."""
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
        """Remove a follower."""
        self._following.discard(following)

    async def is_watching(self) -> None:
        """Wait until the first attempt to read the database has ended."""
        if not self._is_closed:
            await self._was_tried.wait()

    def revision(self, agent: str | None) -> int:
        """Return the number of the last write of this agent or the catalog, or of any write if the agent is None."""
        if self._state is None:
            return 0
        return self._state.number if agent is None else self._state.revision(agent)

    def end(self) -> None:
        """Close all followers and the watch."""
        self._is_closed = True
        self._was_tried.set()
        for following in list(self._following):
            following.close()
        if self._watching is not None:
            self._watching.cancel()

    async def close(self) -> None:
        """End the feed, and close its connection to the database."""
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
                    self._announce(await watch.read())
                    pause = FIRST_PAUSE
                    await asyncio.sleep(GAP)
                    await watch.wait(self._until_next_end())
                except Exception as error:
                    if not isinstance(error, commits.UnreachableError):
                        # A defect, which must not end the notifications.
                        _log.exception("changes not read")
                    self._note_trouble(str(error) or type(error).__name__)
                    self._was_tried.set()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, MAX_PAUSE)
        finally:
            self._was_tried.set()
            # Before anything is awaited, so that the next follower starts another watch.
            self._watching = self._state = None
            await watch.close()

    def _announce(self, state: commits.State) -> None:
        self._note_trouble("")
        previous, self._state = self._state, state
        if previous is None:
            moved, is_another_catalog = frozenset(state.agents), True
        else:
            moved, is_another_catalog = state.moved_since(previous), state.catalog != previous.catalog
        ended = self._ended(state)
        changes = Changes(
            revision=state.number,
            catalog=is_another_catalog or commits.CATALOG in ended,
            agents=moved | (ended - {commits.CATALOG}),
        )
        if changes.concern(None):
            for following in list(self._following):
                following.notify(changes)
        self._was_tried.set()

    def _ended(self, state: commits.State) -> frozenset[str]:
        """Return the agents with grants that expired since the last call, and commits.CATALOG if a block ended."""
        last, self._asked_at = self._asked_at, clock.now()
        return frozenset([key for at, key in state.ends if last < at <= self._asked_at])

    def _until_next_end(self) -> float:
        """Return the seconds until the next expiry or end of a block, at most :data:`IDLE`."""
        ends = self._state.ends if self._state is not None else ()
        first = next((at for at, _ in ends if at > self._asked_at), None)
        if first is None:
            return IDLE
        # A little longer, so that it has expired by then: clocks differ.
        return min(IDLE, max(0.0, (first - clock.now()).total_seconds()) + 0.001)

    def _note_trouble(self, trouble: str) -> None:
        """Log once that the database cannot be read, and once that it can be read again."""
        if trouble and not self._trouble:
            _log.warning("changes not followed: the database cannot be read", error=trouble)
        elif self._trouble and not trouble:
            _log.info("changes followed again")
        self._trouble = trouble


_feeds: dict[asyncio.AbstractEventLoop, Feed] = {}


def changes(agent: str) -> Following:
    """Follow the agent with this key: each notification stands for commits of its configuration or the catalog."""
    return _here().follow(agent)


def all_changes() -> Following:
    """Follow all agents: each notification names those with commits since the last one."""
    return _here().follow(None)


def end() -> None:
    """Close all followers on this event loop, and those that are added later."""
    _here().end()


def is_ended() -> bool:
    """Return whether :func:`end` was called: this server is shutting down."""
    return _here().is_closed


async def close() -> None:
    """Close all followers on this event loop, and the connection to the database."""
    await _here().close()


def _here() -> Feed:
    loop = asyncio.get_running_loop()
    if loop not in _feeds:
        for other in [other for other in _feeds if other.is_closed()]:
            del _feeds[other]
        _feeds[loop] = Feed()
    return _feeds[loop]
