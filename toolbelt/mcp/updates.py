"""Following of upstream servers' resources that the client of a stream has subscribed to."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Sequence

from toolbelt.mcp import exchanges, ongoing_call, request_head, streams
from toolbelt.runtime import calls, credentials
from toolbelt.runtime.calls import resource_updates, subscriptions


def call_of(
    exchange: exchanges.Exchange, head: request_head.RequestHead, bearer: credentials.Bearer
) -> ongoing_call.OngoingCall:
    """Return what stands for a client as the caller of requests that concern its subscriptions."""
    return ongoing_call.OngoingCall(
        head=head,
        bearer=bearer,
        call=calls.Call(key=head.key, tool="", arguments={}),
        contexts=exchange.shared.contexts,
    )


async def can_follow(call: ongoing_call.OngoingCall, uris: Sequence[str]) -> list[str]:
    """Return those of the resources whose servers send updates."""
    asked = [resource_updates.can_follow(call.call.key, uri, call.caller()) for uri in uris]
    return [uri for uri, follows in zip(uris, await asyncio.gather(*asked), strict=True) if follows]


class Following:
    """The resources that are followed for one stream while it is open."""

    def __init__(self, call: ongoing_call.OngoingCall, stream: streams.Stream) -> None:
        self._call, self._stream = call, stream
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def follow(self, uris: Collection[str]) -> None:
        """Follow these resources, and no others."""
        followed = [*uris][: subscriptions.MAX_FOLLOWED]
        for uri in self._tasks.keys() - set(followed):
            self._tasks.pop(uri).cancel()
        for uri in followed:
            if uri not in self._tasks:
                self._tasks[uri] = asyncio.create_task(self._followed(uri))

    def end(self) -> None:
        """Stop following."""
        self.follow(())

    async def _followed(self, uri: str) -> None:
        notify = functools.partial(self._stream.update, uri)
        await resource_updates.follow(self._call.call.key, uri, notify, self._call.caller())
