"""The streams on which clients are notified of changes, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from toolbelt.mcp import (
    exchanges,
    list_changes,
    protocol,
    request_head,
    resources,
    results,
    revisions,
    streams,
    updates,
)
from toolbelt.runtime import credentials, threads
from toolbelt.runtime.calls import resource_updates, subscriptions

# How long a client should wait before it reconnects after its stream ended, in milliseconds.
RECONNECT_MILLISECONDS = 1000
# The changes that a modern client may listen for, with their digest and notification.
_LISTS = {
    "toolsListChanged": ("tools", protocol.LIST_CHANGED),
    "promptsListChanged": ("prompts", protocol.PROMPTS_CHANGED),
    "resourcesListChanged": ("resources", protocol.RESOURCES_CHANGED),
}


async def open_stream(exchange: exchanges.Exchange, head: request_head.RequestHead) -> exchanges.Reply | None:
    """Open the stream of a client of the first era."""
    version = head.protocol_headers.version or revisions.ASSUMED
    if version not in revisions.HANDSHAKE:
        if version in revisions.MODERN:
            raise protocol.ProtocolError(
                protocol.INVALID_REQUEST,
                "In this revision, listen with subscriptions/listen.",
                status=405,
                headers=request_head.ALLOW_POST,
            )
        raise protocol.ProtocolError(protocol.INVALID_REQUEST, f"Revision {version[:40]!r} is not supported.")
    current = await exchange.current_list(head, may_grow=True)
    known_digests = _known_digests(exchange, head, exchanges.digests(current.tools))
    state = streams.StreamState.of(head, may_grow=True)
    stream = streams.Stream(
        state=state,
        known_digests=known_digests,
        client=head.client_session,
        subscription=resources.subscription(head),
    )
    async with _stream(exchange, head, stream, current.bearer):
        await exchange.shared.streams.sync(head.agent)
        await exchange.begin(exchanges.EVENTS)
        await exchange.send_part(_first_event(revisions.REVISIONS[version], known_digests))
        # In the order of streams.Digests.
        messages = (
            protocol.notification(protocol.LIST_CHANGED),
            resources.updated(),
            protocol.notification(protocol.PROMPTS_CHANGED),
            protocol.notification(protocol.RESOURCES_CHANGED),
        )

        def events(changes: streams.Digests) -> bytes:
            return b"".join(
                protocol.event(message, list_changes.new_session(*stream.known_digests))
                for message, digest in zip(messages, changes, strict=True)
                if digest
            )

        def update(uri: str) -> bytes:
            return protocol.event(resources.updated(uri=uri))

        if await _follow(exchange, stream, events, update):
            await exchange.send_part(b"", more=False)
    exchange.note(200)
    return None


def _known_digests(
    exchange: exchanges.Exchange, head: request_head.RequestHead, now: streams.Digests
) -> streams.Digests:
    """Return the digests of the lists that a client of the first era knows: by its last event, else by its session."""
    last, session = head.last_event, head.client_session
    return streams.Digests(
        now.tools
        and (list_changes.digest_in(last) or exchange.shared.list_tracker.digest(head) or now.tools),
        list_changes.policy_in(last) or list_changes.policy_in(session) or now.policy,
        *(list_changes.others_in(last) or list_changes.others_in(session) or now[2:]),
    )


def _first_event(revision: revisions.Revision, known_digests: streams.Digests) -> bytes:
    """Return what begins a stream: with an id, from which the client continues, if the revision wants that."""
    if not revision.is_primed:
        return b"retry: %d\n: here is what changes\n\n" % RECONNECT_MILLISECONDS
    last_event = list_changes.new_session(*known_digests).encode()
    return b"id: %s\nretry: %d\ndata:\n\n" % (last_event, RECONNECT_MILLISECONDS)


async def subscribe(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply | None:
    """Open the stream of a client of the second era."""
    requested = message.params.get("notifications")
    if not isinstance(requested, dict):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.notifications must be a JSON object.")
    if not head.takes_events:
        raise protocol.ProtocolError(
            protocol.INVALID_REQUEST, "Accept text/event-stream: the response is a stream.", status=406
        )
    current = await exchange.current_list(head, may_grow=False)
    state = streams.StreamState.of(head, may_grow=False)
    wants_policy, others = await _followed(exchange, head, current.bearer, requested)
    stream = streams.Stream(
        state=state, known_digests=exchanges.digests(current.tools), wants_policy=wants_policy
    )
    about = {protocol.SUBSCRIPTION: message.id}
    honoured: dict[str, Any] = {
        name: True
        for name in _LISTS
        if requested.get(name) is True and not (name == "toolsListChanged" and current.tools.is_constant)
    }
    if wants_policy or others:
        honoured["resourceSubscriptions"] = [*([resources.POLICY] if wants_policy else []), *others]
    acknowledged = protocol.notification(protocol.ACKNOWLEDGED, {"notifications": honoured, "_meta": about})
    messages = {
        field: protocol.event(protocol.notification(method, {"_meta": about}))
        for name, (field, method) in _LISTS.items()
        if name in honoured
    }
    messages["policy"] = protocol.event(resources.updated({"_meta": about}))

    def events(changes: streams.Digests) -> bytes:
        return b"".join(message for field, message in messages.items() if getattr(changes, field))

    def update(uri: str) -> bytes:
        return protocol.event(resources.updated({"_meta": about}, uri))

    async with _stream(exchange, head, stream, current.bearer):
        stream.follow(others)
        await exchange.begin(exchanges.EVENTS)
        await exchange.send_part(protocol.event(acknowledged))
        if await _follow(exchange, stream, events, update):
            meta = {**results.SERVER_META, **about}
            await exchange.send_part(
                protocol.event(protocol.answer(message.id, {"resultType": "complete", "_meta": meta})),
                more=False,
            )
    exchange.note(200)
    return None


async def _followed(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    bearer: credentials.Bearer,
    requested: Mapping[str, Any],
) -> tuple[bool, list[str]]:
    """Return whether a client wants updates of the policy, and the other resources whose updates it gets."""
    sent = requested.get("resourceSubscriptions")
    uris = [uri for uri in sent if isinstance(uri, str)] if isinstance(sent, list) else []
    uris = uris[: subscriptions.MAX_FOLLOWED]
    others = [uri for uri in dict.fromkeys(uris) if uri != resources.POLICY]
    if others:
        others = await threads.run(resource_updates.active, head.key, others)
        # What is not acknowledged is refused.
        others = await updates.can_follow(updates.call_of(exchange, head, bearer), others)
    return resources.POLICY in uris, others


@contextlib.asynccontextmanager
async def _stream(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    stream: streams.Stream,
    bearer: credentials.Bearer,
) -> AsyncIterator[None]:
    following = updates.Following(updates.call_of(exchange, head, bearer), stream)
    stream.follow = following.follow
    exchange.shared.streams.open(stream)
    try:
        # The client may know older lists than the current ones, and these may have changed since the request arrived.
        await exchange.shared.streams.compare_lists(head.agent, [stream])
        yield
    finally:
        following.end()
        exchange.shared.streams.close(stream)


async def _follow(
    exchange: exchanges.Exchange,
    stream: streams.Stream,
    events: Callable[[streams.Digests], bytes],
    update: Callable[[str], bytes],
) -> bool:
    """Notify a client of changes and updates. Return whether the stream ended on this side."""
    disconnected = asyncio.create_task(exchanges.wait_for_disconnect(exchange.receive))
    disconnected.add_done_callback(lambda _: stream.end())
    try:
        while True:
            changes = await stream.wait_for_changes(streams.KEEP_ALIVE)
            if disconnected.done():
                return False
            updated, stream.updated = [*stream.updated], {}
            message = b"".join([events(changes) if changes is not None else b"", *map(update, updated)])
            if message:
                await exchange.send_part(message)
            if stream.has_ended:
                return True
            if changes is None and not updated:
                await exchange.send_part(b": still here\n\n")
    finally:
        disconnected.cancel()
