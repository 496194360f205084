"""Updates of upstream servers' resources, for MCP clients that subscribed to them.

A subscription is not a call and is not recorded, but the same gate checks it: before the request to the server, and
again before each notification of the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from toolbelt.core import prompts_and_resources
from toolbelt.plugins import registry
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.calls import gates, incoming, on_servers
from toolbelt.runtime.calls import prompts_and_resources as requests

# The pause before another attempt, if the resource was not granted or its server went away.
RETRY_SECONDS = 15.0
# The longest time for which one request to the server follows a resource.
FOLLOW_SECONDS = 3600.0
# How long a server may take to say whether it sends updates.
CHECK_SECONDS = 10.0

_log = structlog.get_logger(__name__)


def active(key: incoming.RequestKey, uris: list[str]) -> list[str]:
    """Return the URIs that the agent may read now, in a thread that may block."""
    resolved = surfaces.of(key).resolution
    return [uri for uri in uris if prompts_and_resources.find_resource(resolved, uri) in resolved.non_tools]


async def follow(
    key: incoming.RequestKey, uri: str, notify: Callable[[], object], caller: incoming.Caller
) -> None:
    """Call ``notify`` each time the server reports that the resource has changed, until cancelled."""
    while True:
        try:
            await _follow_once(key, uri, notify, caller)
        except registry.TimedOutError:
            # What changes before the next request follows the resource is not reported.
            notify()
            continue
        except Exception as error:
            # For example, it is no longer granted, or the server does not respond.
            _log.debug("resource not followed", agent=key.agent, uri=uri, error=str(error))
        await asyncio.sleep(RETRY_SECONDS)


async def can_follow(key: incoming.RequestKey, uri: str, caller: incoming.Caller) -> bool:
    """Return whether the server of a resource that the agent may read sends updates of it.

    True if that is not known now, for example because the server does not respond: it is asked again later.
    """
    try:
        admitted = await _admit(key, uri, caller, on_servers.CAN_FOLLOW)
        if admitted is None:
            return True
        result = await on_servers.run(admitted, calls.last_check(admitted))
    except Exception as error:
        _log.debug("subscription not checked", agent=key.agent, uri=uri, error=str(error))
        return True
    return bool(result.result["follows"])


async def _follow_once(
    key: incoming.RequestKey, uri: str, notify: Callable[[], object], caller: incoming.Caller
) -> None:
    loop, updated = asyncio.get_running_loop(), asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        # Runs on the upstream servers' event loop.
        loop.call_soon_threadsafe(updated.set)

    async def admit() -> gates.Admitted | None:
        return await _admit(key, uri, caller, on_servers.FOLLOW, on_progress, FOLLOW_SECONDS)

    first = await admit()
    if first is None:
        return
    following: asyncio.Task[Any] = asyncio.create_task(on_servers.run(first, calls.last_check(first)))
    following.add_done_callback(lambda _: updated.set())
    try:
        while True:
            await updated.wait()
            updated.clear()
            if following.done():
                following.result()
                return
            now = await admit()
            if now is None or now.tool != first.tool:
                return
            notify()
    finally:
        following.cancel()
        await asyncio.wait({following})


async def _admit(
    key: incoming.RequestKey,
    uri: str,
    caller: incoming.Caller,
    method: str,
    progress: incoming.Progress | None = None,
    seconds: float = CHECK_SECONDS,
) -> gates.Admitted | None:
    """Admit a request about updates of a resource, which is not recorded; return None if it is refused."""
    target = requests.Target(
        find=lambda resolved: prompts_and_resources.find_resource(resolved, uri),
        params=lambda upstream_name: {"uri": uri},
    )
    call = incoming.Call(key=key, tool=uri, arguments={}, method=method, progress=progress, seconds=seconds)
    gate = requests.NonToolGate(call, target, caller)
    gate.recording.is_ended = True
    await gate.probe()
    admitted = await gate.in_thread(requests.prepared, gate)
    return admitted if isinstance(admitted, gates.Admitted) else None
