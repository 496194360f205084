"""Startup and shutdown of a server process (ASGI's lifespan).

A server without lifespan support starts with its first request, and stops with its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable

import structlog

from toolbelt.control.access import expirations
from toolbelt.control.servers import running_tools
from toolbelt.front import access_log, messages, signals
from toolbelt.runtime import (
    availability,
    context_use,
    credentials,
    feed,
    plugins,
    prepared_answers,
    record_writer,
    semantic_search,
    telemetry,
    upstream_connections,
)

# The maximum time that plugins may delay the shutdown of a server; each plugin also has its own limit.
GRACE = 30.0

_log = structlog.get_logger(__name__)


class Lifespan:
    """The lifespan of a server process."""

    def __init__(
        self,
        answers: prepared_answers.PreparedAnswers | None,
        log: access_log.AccessLog,
        grace: float = GRACE,
    ) -> None:
        self._answers = answers
        self._access_log = log
        self._grace = grace
        self._has_begun = False

    def begin(self) -> None:
        """Start the background work, unless it is already started."""
        if not self._has_begun:
            self._has_begun = True
            telemetry.start()
            availability.start()
            plugins.start()
            record_writer.start()
            semantic_search.start()
            credentials.start()
            expirations.start()
            running_tools.start(plugins.runnable)
            # What is loaded by now stays; searching it for garbage would hold up all requests for 0.1 s each time.
            gc.freeze()

    async def end(self) -> None:
        """Stop the background work, write the access log, stop plugins within the grace period, and close the database
        connections.
        """
        expirations.stop()
        running_tools.stop()
        await feed.close()
        self._access_log.write()
        await _within(plugins.stop, self._grace, "plugins not stopped")
        context_use.flush()
        await _within(record_writer.stop, self._grace, "records of calls not written")
        await _within(telemetry.stop, self._grace, "telemetry not sent")
        if self._answers is not None:
            await self._answers.close()

    async def live(self, receive: messages.Receive, send: messages.Send) -> None:
        """Start and stop with the server's lifespan events.

        The feed ends at the signal to stop, because the server does not send its shutdown event while streams are open.
        """
        with contextlib.ExitStack() as until_the_end:
            while True:
                message = await receive()
                if message["type"] == "lifespan.startup":
                    until_the_end.enter_context(upstream_connections.hosted())
                    self.begin()
                    until_the_end.enter_context(signals.call_on_stop(feed.end))
                    await send({"type": "lifespan.startup.complete"})
                else:
                    await self.end()
                    await send({"type": "lifespan.shutdown.complete"})
                    return


async def _within(act: Callable[[], None], seconds: float, trouble: str) -> None:
    """Run ``act`` in a thread and wait at most this long. Log ``trouble`` if it fails or does not finish."""
    loop, has_ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            act()
        except Exception:
            _log.exception(trouble)
        finally:
            # The loop may be closed after the timeout.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(has_ended.set)

    threading.Thread(target=run, name="toolbelt-stop", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await has_ended.wait()
    except TimeoutError:
        _log.error(trouble, seconds=seconds)
