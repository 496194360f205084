"""Notifications of servers that their lists have changed, in each revision of the protocol.

In older revisions, servers send a notification at any time. Newer revisions require a subscription, which is held open;
while there is none, changes go unnoticed, so each new subscription counts as a change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from toolbelt.plugins.upstream import limits

if TYPE_CHECKING:
    import mcp


async def listen(
    client: mcp.Client, changed: Callable[[], None], bounds: limits.Limits, begun: asyncio.Event
) -> None:
    """Keep a subscription open, if the server offers any. Its notifications arrive like all other messages.

    ``begun`` is set as soon as there is one, or the first attempt has failed: lists that are read afterwards miss no
    change.
    """
    try:
        offered = client.server_capabilities
        lists = {
            name
            for name in ("tools", "prompts", "resources")
            if (capability := getattr(offered, name)) is not None and capability.list_changed
        }
        if lists:
            await _keep(client, lists, changed, bounds, begun)
    finally:
        begun.set()


async def _keep(
    client: mcp.Client,
    lists: Collection[str],
    changed: Callable[[], None],
    bounds: limits.Limits,
    begun: asyncio.Event,
) -> None:
    from mcp.client import subscriptions
    from mcp.shared.exceptions import MCPError

    pause = bounds.first_pause
    while True:
        since = time.monotonic()
        try:
            async with client.listen(
                tools_list_changed="tools" in lists,
                prompts_list_changed="prompts" in lists,
                resources_list_changed="resources" in lists,
            ) as subscription:
                begun.set()
                async for _ in subscription:
                    pass
        except (MCPError, subscriptions.SubscriptionLost, TimeoutError):
            pass
        except RuntimeError:
            # The revision has no subscriptions, or the connection is closing.
            return
        begun.set()
        lasted = time.monotonic() - since
        pause = bounds.first_pause if lasted > bounds.longest_pause else pause * 2
        await asyncio.sleep(min(pause, bounds.longest_pause))
        changed()
