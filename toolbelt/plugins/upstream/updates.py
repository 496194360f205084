"""Notifications of servers that a resource was updated, in each revision of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolbelt.plugins.upstream import limits, live_connection

if TYPE_CHECKING:
    import mcp

Notify = Callable[[], object]
METHOD_NOT_FOUND = -32601
# How servers refuse a subscription: they have none, not of this resource, or not in this state.
_REFUSALS = frozenset({METHOD_NOT_FOUND, -32600, -32602, -32002})


class Followers:
    """The followers of resources on one connection to a server up to 2025-11-25."""

    def __init__(self) -> None:
        self._followers: dict[str, list[Notify]] = {}

    def notify(self, uri: str) -> None:
        """Notify the followers of a resource, and of those that it is a part of."""
        for followed, callbacks in [*self._followers.items()]:
            if uri == followed or uri.startswith(f"{followed.rstrip('/')}/"):
                for notify in [*callbacks]:
                    notify()

    def join(self, uri: str, notify: Notify) -> bool:
        """Add a follower of a resource. Return whether it is the first one."""
        followers = self._followers.setdefault(uri, [])
        followers.append(notify)
        return len(followers) == 1

    def leave(self, uri: str, notify: Notify) -> bool:
        """Remove a follower of a resource. Return whether it was the last one."""
        followers = self._followers[uri]
        followers.remove(notify)
        if not followers:
            del self._followers[uri]
        return not followers


async def follow(
    live: live_connection.LiveConnection,
    followers: Followers,
    uri: str,
    notify: Notify,
    bounds: limits.Limits,
) -> None:
    """Call ``notify`` at each update of the resource until the connection ends. Raise the official client's errors."""
    from mcp.client import subscriptions

    client = live.at_hand()
    try:
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            async for _ in subscription:
                notify()
        return
    except subscriptions.ListenNotSupportedError:
        pass
    offered = client.server_capabilities.resources
    # Without the capability, it may still send notifications, which nobody asked for.
    takes_requests = offered is not None and bool(offered.subscribe)
    is_first = followers.join(uri, notify)
    try:
        if is_first and takes_requests:
            await _subscribe(live, uri, bounds)
        await live.leave.wait()
    finally:
        if followers.leave(uri, notify) and takes_requests and not live.leave.is_set():
            live.subscribed.discard(uri)
            with contextlib.suppress(Exception):
                await asyncio.shield(_send(client, uri, bounds, is_end=True))


async def are_sent(live: live_connection.LiveConnection, uri: str, bounds: limits.Limits) -> bool:
    """Return whether the server agrees to send updates of the resource. Raise the official client's errors.

    Up to 2025-11-25, this subscribes to the resource.
    """
    from mcp.client import subscriptions
    from mcp.shared.exceptions import MCPError

    client = live.at_hand()
    try:
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            return bool(subscription.honored.resource_subscriptions)
    except subscriptions.ListenNotSupportedError:
        offered = client.server_capabilities.resources
        if offered is None or not offered.subscribe:
            return False
        try:
            await _subscribe(live, uri, bounds)
        except MCPError as error:
            if error.code in _REFUSALS:
                return False
            raise
        return True
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return False
        raise


async def _subscribe(live: live_connection.LiveConnection, uri: str, bounds: limits.Limits) -> None:
    """Ask for updates of the resource, once for each connection."""
    if uri not in live.subscribed:
        live.subscribed.add(uri)
        try:
            await _send(live.at_hand(), uri, bounds, is_end=False)
        except BaseException:
            live.subscribed.discard(uri)
            raise


async def _send(client: mcp.Client, uri: str, bounds: limits.Limits, *, is_end: bool) -> None:
    import mcp_types

    request: mcp_types.SubscribeRequest | mcp_types.UnsubscribeRequest
    if is_end:
        request = mcp_types.UnsubscribeRequest(params=mcp_types.UnsubscribeRequestParams(uri=uri))
    else:
        request = mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri=uri))
    async with asyncio.timeout(bounds.listing):
        await client.session.send_request(request, mcp_types.EmptyResult)
