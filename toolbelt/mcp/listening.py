"""How does a client listen for changes? By a stream of its own, as its era opens one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from toolbelt.mcp import exchanges, heads, protocol, revisions, streams, told

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
    known = told.digest_in(head.last_event) or exchange.shared.told.digest(head) or found.tools.digest
    seen = streams.Seen(head.token, head.agent, head.session, True)
    stream = streams.Stream(seen=seen, digest=known, client=head.client_session)
    first = b"retry: %d\n: here is what changes\n\n" % RETRY
    if revisions.REVISIONS[version].is_primed:
        first = b"id: %s\nretry: %d\ndata:\n\n" % (told.new_session(known).encode(), RETRY)
    with _stream(exchange, stream, found.tools.digest):
        await exchange.begin(exchanges.EVENTS)
        await exchange.say(first)
        message = protocol.notification(protocol.LIST_CHANGED)
        if await _follow(exchange, stream, lambda digest: protocol.event(message, told.new_session(digest))):
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
    stream = streams.Stream(seen=seen, digest=found.tools.digest)
    is_wanted = wanted.get("toolsListChanged") is True
    about = {protocol.SUBSCRIPTION: id_}
    honoured = {"toolsListChanged": True} if is_wanted else {}
    acknowledged = protocol.notification(protocol.ACKNOWLEDGED, {"notifications": honoured, "_meta": about})
    changed = protocol.event(protocol.notification(protocol.LIST_CHANGED, {"_meta": about}))
    with _stream(exchange, stream, found.tools.digest):
        await exchange.begin(exchanges.EVENTS)
        await exchange.say(protocol.event(acknowledged))
        if await _follow(exchange, stream, lambda _: changed if is_wanted else b""):
            meta = {**exchanges.ABOUT, **about}
            await exchange.say(
                protocol.event(protocol.answer(id_, {"resultType": "complete", "_meta": meta})),
                more=False,
            )
    exchange.note(200)
    return None


@contextlib.contextmanager
def _stream(exchange: exchanges.Exchange, stream: streams.Stream, now: str) -> Iterator[None]:
    exchange.shared.streams.open(stream)
    try:
        # Its client may know an older list than the one of this moment.
        stream.see(now)
        yield
    finally:
        exchange.shared.streams.close(stream)


async def _follow(
    exchange: exchanges.Exchange, stream: streams.Stream, event: Callable[[str], bytes]
) -> bool:
    """Tell a client of changes; say whether the stream ended on this side."""
    gone = asyncio.create_task(exchanges.gone(exchange.receive))
    gone.add_done_callback(lambda _: stream.end())
    try:
        while True:
            digest = await stream.turn(streams.KEEP_ALIVE)
            if gone.done():
                return False
            if digest is not None:
                await exchange.say(event(digest))
            if stream.is_over:
                return True
            if digest is None:
                await exchange.say(b": still here\n\n")
    finally:
        gone.cancel()
