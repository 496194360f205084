"""The end of running calls whose tool an operator blocks for everyone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import structlog

from toolbelt.runtime import feed
from toolbelt.runtime.calls import gates, last_checks
from toolbelt.store import holds

_log = structlog.get_logger(__name__)

# How long a call runs, in seconds, before changes are watched on its behalf.
WATCH_AFTER = 0.2


@contextlib.asynccontextmanager
async def until_blocked(admitted: gates.Admitted) -> AsyncIterator[None]:
    """Cancel the block and raise last_checks.DeniedError if the tool of its call is blocked for everyone.

    Like asyncio.timeout this cancels the current task, which costs less than a task for each call.
    """
    loop, caller = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())
    before = caller.cancelling()
    watching: list[asyncio.Task[last_checks.DeniedError]] = []
    is_stopped = is_over = False

    def stop(watch: asyncio.Task[last_checks.DeniedError]) -> None:
        nonlocal is_stopped
        if not watch.cancelled() and not is_over:
            is_stopped = True
            caller.cancel()

    def begin() -> None:
        watching.append(loop.create_task(_wait_until_blocked(admitted)))
        watching[0].add_done_callback(stop)

    # Most calls end earlier, and need no watch.
    later = loop.call_later(WATCH_AFTER, begin)
    try:
        yield
    except asyncio.CancelledError:
        # It may have been cancelled for another reason as well.
        if not is_stopped or caller.cancelling() > before + 1:
            raise
        raise watching[0].result() from None
    finally:
        is_over = True
        later.cancel()
        if is_stopped:
            caller.uncancel()
        if watching:
            watching[0].cancel()
            await asyncio.wait(watching)


async def _wait_until_blocked(admitted: gates.Admitted) -> last_checks.DeniedError:
    """Return why the call has to end, as soon as an operator blocks its tool, plugin or a toolkit over it."""
    loop = asyncio.get_running_loop()
    async with feed.changes(admitted.gate.call.key.agent) as changes:

        def notify() -> None:
            # The loop may have ended.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(changes.notify, feed.Changes(revision=0, catalog=True))

        with holds.notifying(notify):
            return await _check_after_each(admitted, changes)


async def _check_after_each(admitted: gates.Admitted, changes: feed.Following) -> last_checks.DeniedError:
    while True:
        try:
            denied = await admitted.gate.in_thread(last_checks.blocked, admitted)
        except Exception:
            # For example, the database cannot be read. The call is checked again after the next change.
            _log.exception("running call not checked", tool=admitted.tool)
            denied = None
        if denied is not None:
            return denied
        try:
            await anext(changes)
        except StopAsyncIteration:
            # The server is shutting down, which ends the call in its own way.
            await asyncio.Future()
