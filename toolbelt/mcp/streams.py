"""The open streams of clients that are notified when an agent's tools, policy, prompts or resources change.

Many streams may follow one agent: whether its lists changed is determined once for all streams that see the same. A
stream is notified if the digest of its list changes, so a change that does not affect the list is not announced. A list
may change twice between two comparisons, and its client may have requested it in between: what was sent to clients of a
stream's state is therefore compared as well. A stream ends when its token is no longer valid.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from toolbelt.core import agents, errors, limits, request_key
from toolbelt.mcp import protocol, request_head
from toolbelt.runtime import feed

KEEP_ALIVE = limits.KEEP_ALIVE_SECONDS
# Limits per process, and per agent and per token in a process.
MAX_COUNT = 4000
MAX_PER_AGENT = 2000
MAX_PER_TOKEN = 1000
# When to try again if there are too many, in seconds.
RETRY_AFTER = 15
# When to compare lists again if they could not be read, in seconds.
RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class StreamState(NamedTuple):
    """The attributes that determine a client's lists."""

    token: str
    key: request_key.RequestKey
    may_grow: bool
    loading: agents.McpLoading | None = None

    @classmethod
    def of(cls, head: request_head.RequestHead, *, may_grow: bool) -> StreamState:
        """Return the state of the client that sent this request."""
        return cls(head.token, head.key, may_grow, head.loading)


class Digests(NamedTuple):
    """Digests of a client's tools, policy, prompts, and resources with templates; empty for no change."""

    tools: str = ""
    policy: str = ""
    prompts: str = ""
    resources: str = ""


NO_CHANGES = Digests()

# Returns the current digests, or raises ProtocolError for a token that is no longer valid, and errors.Unavailable.
Digest = Callable[[StreamState], Awaitable[Digests]]
# Returns which of these keys belong to clients that subscribed to the policy.
Subscribed = Callable[[Collection[str]], Awaitable[Collection[str]]]
# Returns the resources that these clients subscribed to, by key.
Uris = Callable[[Collection[str]], Awaitable[Mapping[str, Collection[str]]]]


@dataclass(eq=False, slots=True, kw_only=True)
class Stream:
    """An open stream. ``known_digests`` are those of the lists that its client knows; ``client`` identifies the client.

    ``subscription`` is the key of its client's subscriptions; without it, ``wants_policy`` is whether it subscribed to
    the policy. ``pending`` are the changed lists, and ``updated`` the upstream servers' resources, to notify the client
    of; ``follow`` is called with the resources that its client has subscribed to. ``received`` are lists other than the
    known ones that were sent to clients of this state since the last comparison: field and digest.
    """

    state: StreamState
    known_digests: Digests
    client: str = ""
    subscription: str = ""
    wants_policy: bool = False
    has_ended: bool = False
    pending: Digests = NO_CHANGES
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    updated: dict[str, None] = field(default_factory=dict)
    received: set[tuple[str, str]] = field(default_factory=set)
    follow: Callable[[Collection[str]], None] = lambda uris: None

    def update_digests(self, now: Digests, subscribed: Collection[str] = ()) -> None:
        """Record the current digests, and wake the stream if its client must be notified of a difference."""
        received, self.received = self.received, set()
        outdated = {name for name, digest in received if digest != getattr(now, name)}
        pending = Digests(
            *(
                new if new != old or name in outdated else unsent
                for name, new, old, unsent in zip(
                    Digests._fields, now, self.known_digests, self.pending, strict=True
                )
            )
        )
        if not (self.wants_policy or self.subscription in subscribed):
            pending = pending._replace(policy=self.pending.policy)
        self.known_digests = now
        if pending != self.pending:
            self.pending = pending
            self.wakeup.set()

    def update(self, uri: str) -> None:
        """Notify the client that a resource has changed."""
        self.updated[uri] = None
        self.wakeup.set()

    def end(self) -> None:
        """End the stream."""
        self.has_ended = True
        self.wakeup.set()

    async def wait_for_changes(self, within: float) -> Digests | None:
        """Wait for changes and return their digests, or None after the timeout or when the stream ends."""
        if not self.wakeup.is_set():
            # With hundreds of streams, cheaper than a task for each wait.
            loop = asyncio.get_running_loop()
            alarm = loop.call_later(within, self.wakeup.set)
            try:
                await self.wakeup.wait()
            finally:
                alarm.cancel()
        self.wakeup.clear()
        changes, self.pending = self.pending, NO_CHANGES
        return changes if any(changes) else None


class Streams:
    """The open streams of one process."""

    def __init__(self, digest: Digest, subscribed: Subscribed, uris: Uris) -> None:
        self._digest = digest
        self._subscribed, self._uris = subscribed, uris
        self._by_agent: dict[str, set[Stream]] = {}
        # An operator's token opens streams of many agents.
        self._of_token: collections.Counter[str] = collections.Counter()
        self._watching: dict[str, asyncio.Task[None]] = {}
        # For each agent, to compare its lists one after the other: a slow comparison must not undo a later one.
        self._comparing: dict[str, asyncio.Lock] = {}
        # Comparisons after a list was sent that its streams do not know.
        self._checks: set[asyncio.Task[bool]] = set()
        self._has_ended = False

    def __len__(self) -> int:
        return self._of_token.total()

    def open(self, stream: Stream) -> None:
        """Add a stream. Raise ProtocolError if there are too many."""
        agent, token = stream.state.key.agent, stream.state.token
        if self._of_token[token] >= MAX_PER_TOKEN:
            raise _too_many(f"This token has {MAX_PER_TOKEN} streams open here")
        if len(self._by_agent.get(agent, ())) >= MAX_PER_AGENT:
            raise _too_many(f"The agent {agent} has {MAX_PER_AGENT} streams open here")
        if len(self) >= MAX_COUNT:
            raise _too_many(f"This server has {MAX_COUNT} streams open")
        self._by_agent.setdefault(agent, set()).add(stream)
        self._comparing.setdefault(agent, asyncio.Lock())
        self._of_token[token] += 1
        if self._has_ended:
            stream.end()
        elif agent not in self._watching:
            self._watching[agent] = asyncio.create_task(self._watch(agent))

    def close(self, stream: Stream) -> None:
        """Remove a stream. Stop watching the agent with its last stream."""
        agent = stream.state.key.agent
        left = self._by_agent.get(agent, set())
        if stream in left:
            left.remove(stream)
            token = stream.state.token
            self._of_token[token] -= 1
            if not self._of_token[token]:
                del self._of_token[token]
        if not left:
            self._by_agent.pop(agent, None)
            self._comparing.pop(agent, None)
            if (watching := self._watching.pop(agent, None)) is not None:
                watching.cancel()

    def record_sent(self, state: StreamState, name: str, digest: Callable[[], str]) -> None:
        """Record that a client of this state was sent a list: a field of :class:`Digests`, and its digest.

        It may differ from the list that the client's streams know, because it was read before or after theirs.
        """
        streams = [stream for stream in self._by_agent.get(state.key.agent, ()) if stream.state == state]
        if not streams:
            return
        sent = digest()
        unknown = [stream for stream in streams if getattr(stream.known_digests, name) != sent]
        for stream in unknown:
            stream.received.add((name, sent))
        if unknown:
            task = asyncio.create_task(self.compare_lists(state.key.agent, unknown))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def compare_lists(self, agent: str, only: Collection[Stream] | None = None) -> bool:
        """Compare the lists of the agent's streams with the current ones, and notify their clients of differences.

        With ``only``, compare those of these streams. Return False if the current lists could not be read.
        """
        async with self._comparing.get(agent) or asyncio.Lock():
            groups: dict[StreamState, list[Stream]] = collections.defaultdict(list)
            for stream in self._by_agent.get(agent, ()) if only is None else only:
                groups[stream.state].append(stream)
            compared = [await self._compare(state, streams) for state, streams in groups.items()]
        return all(compared)

    async def _compare(self, state: StreamState, streams: Collection[Stream]) -> bool:
        try:
            now = await self._digest(state)
            subscribed = await self._subscribed_to_policy(now, streams)
        except protocol.ProtocolError:
            for stream in streams:
                stream.end()
        except errors.Unavailable:
            return False
        except Exception:
            # The next change, or the next check of tokens, tries again.
            _log.exception("lists of streams not compared", agent=state.key.agent)
        else:
            for stream in streams:
                stream.update_digests(now, subscribed)
        return True

    async def _subscribed_to_policy(self, now: Digests, streams: Collection[Stream]) -> Collection[str]:
        """Return the policy subscriptions of the streams whose clients know another policy."""
        keys = {
            stream.subscription
            for stream in streams
            if stream.subscription and stream.known_digests.policy != now.policy
        }
        return await self._subscribed(keys) if keys else ()

    async def sync(self, agent: str) -> None:
        """Follow the resources that the clients of this agent's streams have subscribed to."""
        streams = [stream for stream in self._by_agent.get(agent, ()) if stream.subscription]
        if streams:
            uris = await self._uris({stream.subscription for stream in streams})
            for stream in streams:
                stream.follow(uris.get(stream.subscription, ()))

    def has_stream(self, state: StreamState, client: str) -> bool:
        """Return whether this client has a stream here that sees this list."""
        streams = self._by_agent.get(state.key.agent, ())
        return any(stream.state == state and stream.client == client for stream in streams)

    def leave(self, token: str, agent: str, client: str) -> None:
        """End the streams that a client opened with its token, when it ends its session."""
        for stream in self._by_agent.get(agent, ()):
            if client and stream.client == client and stream.state.token == token:
                stream.end()

    def end(self) -> None:
        """End all streams, and those opened later immediately."""
        self._has_ended = True
        for streams in self._by_agent.values():
            for stream in streams:
                stream.end()

    async def _watch(self, agent: str) -> None:
        """Follow commits, and also check periodically, because tokens expire without a commit."""
        follower = asyncio.create_task(self._follow(agent))
        try:
            while True:
                done, _ = await asyncio.wait({follower}, timeout=KEEP_ALIVE)
                if done:
                    break
                await self.compare_lists(agent)
                try:
                    await self.sync(agent)
                except Exception:
                    # The next check tries again.
                    _log.exception("subscriptions not read for streams", agent=agent)
        finally:
            follower.cancel()
        # The feed ends when the server stops, and then all streams end.
        self.end()

    async def _follow(self, agent: str) -> None:
        async with feed.changes(agent) as changes:
            # Commits between the stream's own check and this one.
            await self._compare_until_read(agent)
            async for _ in changes:
                await self._compare_until_read(agent)

    async def _compare_until_read(self, agent: str) -> None:
        """Compare lists, again if they could not be read: the feed announces a commit only once."""
        while True:
            if await self.compare_lists(agent):
                return
            await asyncio.sleep(RETRY_SECONDS)


def _too_many(limit: str) -> protocol.ProtocolError:
    return protocol.ProtocolError(
        protocol.INVALID_REQUEST,
        f"{limit}, which is the maximum. Close some, or try again later.",
        status=429,
        headers=((b"retry-after", b"%d" % RETRY_AFTER),),
    )
