"""How does a client listen for changes? By a stream of its own, as its era opens one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from toolbelt.mcp import exchanges, heads, protocol, resources, revisions, streams, told

# How soon a client may come again after its stream ended, in milliseconds.
RETRY = 1000


async def open_stream(exchange: exchanges.Exchange, head: heads.Head) -> exchanges.Reply | None:
    """Open the stream of a client of the first era."""
    version = head.about.version or revisions.ASSUMED
    if version not in revisions.HANDSHAKE:
        if version in revisions.MODERN:
            raise protocol.Fault(
                protocol.INVALID_REQUEST,
                "This revision listens by subscriptions/listen.",
                status=405,
                headers=heads.ALLOW_POST,
            )
        raise protocol.Fault(protocol.INVALID_REQUEST, f"Revision {version[:40]!r} is not spoken here.")
    found = await exchange.found(head, may_grow=True)
    now = exchanges.digests(found.tools)
    known = streams.Digests(
        told.digest_in(head.last_event) or exchange.shared.told.digest(head) or now.tools,
        told.policy_in(head.last_event) or told.policy_in(head.client_session) or now.policy,
    )
    seen = streams.Seen(head.token, head.agent, head.session, True)
    stream = streams.Stream(
        seen=seen, known=known, client=head.client_session, subscription=resources.subscription(head)
    )
    first = b"retry: %d\n: here is what changes\n\n" % RETRY
    if revisions.REVISIONS[version].is_primed:
        first = b"id: %s\nretry: %d\ndata:\n\n" % (told.new_session(*known).encode(), RETRY)
    async with _stream(exchange, stream, now):
        await exchange.begin(exchanges.EVENTS)
        await exchange.say(first)
        changed, updated = protocol.notification(protocol.LIST_CHANGED), resources.updated()

        def events(news: streams.Digests) -> bytes:
            return b"".join(
                protocol.event(message, told.new_session(*stream.known))
                for message, digest in ((changed, news.tools), (updated, news.policy))
                if digest
            )

        if await _follow(exchange, stream, events):
            await exchange.say(b"", more=False)
    exchange.note(200)
    return None


async def subscribe(
    exchange: exchanges.Exchange, head: heads.Head, message: protocol.Message, id_: protocol.Id
) -> exchanges.Reply | None:
    """Open the stream of a client of the second era."""
    wanted = message.params.get("notifications")
    if not isinstance(wanted, dict):
        raise protocol.Fault(protocol.INVALID_PARAMS, "params.notifications is a JSON object.")
    if not head.takes_events:
        raise protocol.Fault(
            protocol.INVALID_REQUEST, "Accept text/event-stream: the answer is a stream.", status=406
        )
    found = await exchange.found(head, may_grow=False)
    seen = streams.Seen(head.token, head.agent, head.session, False)
    now = exchanges.digests(found.tools)
    uris = wanted.get("resourceSubscriptions")
    wants_policy = isinstance(uris, list) and resources.POLICY in uris
    stream = streams.Stream(seen=seen, known=now, wants_policy=wants_policy)
    is_wanted = wanted.get("toolsListChanged") is True
    about = {protocol.SUBSCRIPTION: id_}
    honoured: dict[str, Any] = {"toolsListChanged": True} if is_wanted else {}
    if wants_policy:
        honoured["resourceSubscriptions"] = [resources.POLICY]
    acknowledged = protocol.notification(protocol.ACKNOWLEDGED, {"notifications": honoured, "_meta": about})
    changed = protocol.event(protocol.notification(protocol.LIST_CHANGED, {"_meta": about}))
    updated = protocol.event(resources.updated({"_meta": about}))

    def events(news: streams.Digests) -> bytes:
        return (changed if is_wanted and news.tools else b"") + (updated if news.policy else b"")

    async with _stream(exchange, stream, now):
        await exchange.begin(exchanges.EVENTS)
        await exchange.say(protocol.event(acknowledged))
        if await _follow(exchange, stream, events):
            meta = {**exchanges.ABOUT, **about}
            await exchange.say(
                protocol.event(protocol.answer(id_, {"resultType": "complete", "_meta": meta})),
                more=False,
            )
    exchange.note(200)
    return None


@contextlib.asynccontextmanager
async def _stream(
    exchange: exchanges.Exchange, stream: streams.Stream, now: streams.Digests
) -> AsyncIterator[None]:
    exchange.shared.streams.open(stream)
    try:
        # Its client may know an older list and policy than those of this moment.
        stream.see(now, await exchange.shared.streams.subscribed(now, [stream]))
        yield
    finally:
        exchange.shared.streams.close(stream)


async def _follow(
    exchange: exchanges.Exchange, stream: streams.Stream, events: Callable[[streams.Digests], bytes]
) -> bool:
    """Tell a client of changes; say whether the stream ended on this side."""
    gone = asyncio.create_task(exchanges.gone(exchange.receive))
    gone.add_done_callback(lambda _: stream.end())
    try:
        while True:
            news = await stream.turn(streams.KEEP_ALIVE)
            if gone.done():
                return False
            if news is not None and (message := events(news)):
                await exchange.say(message)
            if stream.is_over:
                return True
            if news is None:
                await exchange.say(b": still here\n\n")
    finally:
        gone.cancel()
