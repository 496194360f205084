"""Who wants to hear when an agent's tools or policy change, and did they? One look a change for all who see the same.

Many streams follow one agent: what it takes to find out whether its list changed is done once for all of them that see
the same. A stream hears of a change if the digest of its list is another one; so a change that leaves the list as it
was is told to nobody. A stream whose token opens nothing any more ends.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from toolbelt.core import errors
from toolbelt.mcp import protocol
from toolbelt.runtime import feed

# How often a stream that has nothing to say says so, for whoever stands in between; and how often its token is asked.
KEEP_ALIVE = 15.0
# Of one process, of one agent in it, and of one token.
MOST = 4000
MOST_OF_AGENT = 2000
MOST_OF_ONE = 1000
# When to try again where there are too many, in seconds.
PAUSE = 15

_log = structlog.get_logger(__name__)


class Seen(NamedTuple):
    """What decides which list a stream sees."""

    token: str
    agent: str
    session: str | None
    may_grow: bool


class Digests(NamedTuple):
    """What a client knows, or is to hear of: digests of its list of tools and of its policy, empty for nothing."""

    tools: str = ""
    policy: str = ""


NO_NEWS = Digests()

# Returns the digests, or raises protocol.Fault for a token that does not open them any more.
Digest = Callable[[Seen], Awaitable[Digests]]
# Returns which of these keys belong to clients that subscribed to the policy.
Subscribed = Callable[[Collection[str]], Awaitable[Collection[str]]]


@dataclass(eq=False, slots=True, kw_only=True)
class Stream:
    """One that listens. ``known`` is what its client knows; ``client`` what its client is known by.

    ``subscription`` is the key under which its client may subscribe to the policy; without one, ``wants_policy`` says
    whether it does.
    """

    seen: Seen
    known: Digests
    client: str = ""
    subscription: str = ""
    wants_policy: bool = False
    is_over: bool = False
    news: Digests = NO_NEWS
    rung: asyncio.Event = field(default_factory=asyncio.Event)

    def see(self, now: Digests, subscribed: Collection[str] = ()) -> None:
        """Let it tell its client, if that knows another list, or another policy and wants to hear of it."""
        tools = now.tools if now.tools != self.known.tools else self.news.tools
        policy = self.news.policy
        if now.policy != self.known.policy and (self.wants_policy or self.subscription in subscribed):
            policy = now.policy
        self.known = now
        if (tools, policy) != self.news:
            self.news = Digests(tools, policy)
            self.rung.set()

    def end(self) -> None:
        """Let it come to its end."""
        self.is_over = True
        self.rung.set()

    async def turn(self, within: float) -> Digests | None:
        """Wait for news: return them, or None when it took longer, or the stream is over."""
        if not self.rung.is_set():
            # Cheaper than a task for each wait, with hundreds of streams.
            loop = asyncio.get_running_loop()
            alarm = loop.call_later(within, self.rung.set)
            try:
                await self.rung.wait()
            finally:
                alarm.cancel()
        self.rung.clear()
        news, self.news = self.news, NO_NEWS
        return news if any(news) else None


class Streams:
    """The open streams of one process."""

    def __init__(self, digest: Digest, subscribed: Subscribed) -> None:
        self._digest = digest
        self._subscribed = subscribed
        self._by_agent: dict[str, set[Stream]] = {}
        # An operator's token opens streams of many agents.
        self._of_token: collections.Counter[str] = collections.Counter()
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._is_over = False

    def __len__(self) -> int:
        return self._of_token.total()

    def open(self, stream: Stream) -> None:
        """Take a stream in. Raises protocol.Fault where there are too many."""
        agent, token = stream.seen.agent, stream.seen.token
        if self._of_token[token] >= MOST_OF_ONE:
            raise _too_many(f"This token has {MOST_OF_ONE} streams open here")
        if len(self._by_agent.get(agent, ())) >= MOST_OF_AGENT:
            raise _too_many(f"The agent {agent} has {MOST_OF_AGENT} streams open here")
        if len(self) >= MOST:
            raise _too_many(f"This server has {MOST} streams open")
        self._by_agent.setdefault(agent, set()).add(stream)
        self._of_token[token] += 1
        if self._is_over:
            stream.end()
        elif agent not in self._watching:
            self._watching[agent] = asyncio.create_task(self._watch(agent))

    def close(self, stream: Stream) -> None:
        """Let a stream go; with the last one of an agent goes the watch."""
        agent = stream.seen.agent
        left = self._by_agent.get(agent, set())
        if stream in left:
            left.remove(stream)
            token = stream.seen.token
            self._of_token[token] -= 1
            if not self._of_token[token]:
                del self._of_token[token]
        if not left:
            self._by_agent.pop(agent, None)
            if (watching := self._watching.pop(agent, None)) is not None:
                watching.cancel()

    async def look(self, agent: str) -> None:
        """Find out who of this agent's sees another list now, and let them tell."""
        groups: dict[Seen, list[Stream]] = collections.defaultdict(list)
        for stream in self._by_agent.get(agent, ()):
            groups[stream.seen].append(stream)
        for seen, streams in groups.items():
            try:
                now = await self._digest(seen)
                subscribed = await self.subscribed(now, streams)
            except protocol.Fault:
                for stream in streams:
                    stream.end()
            except errors.Unavailable:
                # The database is away: whoever reads it for all streams logs that, and looks again when it is back.
                continue
            except Exception:
                # The next change, or the next time that tokens are asked for, finds out.
                _log.exception("list not looked at for streams", agent=agent)
            else:
                for stream in streams:
                    stream.see(now, subscribed)

    async def subscribed(self, now: Digests, streams: Collection[Stream]) -> Collection[str]:
        """Return the subscriptions of those streams whose clients know another policy."""
        keys = {one.subscription for one in streams if one.subscription and one.known.policy != now.policy}
        return await self._subscribed(keys) if keys else ()

    def reach(self, seen: Seen, client: str) -> bool:
        """Say whether this client has a stream here that sees this list."""
        return any(one.seen == seen and one.client == client for one in self._by_agent.get(seen.agent, ()))

    def leave(self, token: str, agent: str, client: str) -> None:
        """End the streams of a client that takes its leave: those that it opened with its token."""
        for stream in self._by_agent.get(agent, ()):
            if client and stream.client == client and stream.seen.token == token:
                stream.end()

    def end(self) -> None:
        """Let all streams come to their end, and those that come later at once."""
        self._is_over = True
        for streams in self._by_agent.values():
            for stream in streams:
                stream.end()

    async def _watch(self, agent: str) -> None:
        """Follow what is committed, and ask now and then all the same: tokens end by themselves."""
        follower = asyncio.create_task(self._follow(agent))
        try:
            while True:
                done, _ = await asyncio.wait({follower}, timeout=KEEP_ALIVE)
                if done:
                    break
                await self.look(agent)
        finally:
            follower.cancel()
        # The feed ends with the server, and with it everyone who follows.
        self.end()

    async def _follow(self, agent: str) -> None:
        async with feed.changes(agent) as changes:
            # What was committed between the streams' own look and this one.
            await self.look(agent)
            async for _ in changes:
                await self.look(agent)


def _too_many(what: str) -> protocol.Fault:
    return protocol.Fault(
        protocol.INVALID_REQUEST,
        f"{what}, and no more are opened: close some, or come again after a while.",
        status=429,
        headers=((b"retry-after", b"%d" % PAUSE),),
    )
