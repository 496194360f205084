"""Has the server another list by now? Told by itself, in the way of the revision of the protocol that it speaks.

The older revisions send a notification when they please. The newer ones want a subscription, which is held open; while
none is, nobody tells what happened, so each new one counts as a change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolbelt.plugins.upstream import limits

if TYPE_CHECKING:
    import mcp


async def listen(
    client: mcp.Client, changed: Callable[[], None], bounds: limits.Limits, begun: asyncio.Event
) -> None:
    """Keep a subscription open, where the server has any to offer. What comes through it, comes as any message does.

    ``begun`` is set when there is one, or none is to be had for now: what is listed after that misses no change.
    """
    try:
        offered = client.server_capabilities.tools
        if offered is not None and offered.list_changed:
            await _keep(client, changed, bounds, begun)
    finally:
        begun.set()


async def _keep(
    client: mcp.Client, changed: Callable[[], None], bounds: limits.Limits, begun: asyncio.Event
) -> None:
    from mcp.client import subscriptions
    from mcp.shared.exceptions import MCPError

    pause = bounds.first_pause
    while True:
        since = time.monotonic()
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                begun.set()
                async for _ in subscription:
                    pass
        except (MCPError, subscriptions.SubscriptionLost, TimeoutError):
            pass
        except RuntimeError:
            # Its revision has no subscriptions, or the connection is on its way out.
            return
        begun.set()
        lasted = time.monotonic() - since
        pause = bounds.first_pause if lasted > bounds.longest_pause else pause * 2
        await asyncio.sleep(min(pause, bounds.longest_pause))
        changed()
