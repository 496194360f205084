"""Startup and shutdown of a server process (ASGI's lifespan).

A server without lifespan support starts with its first request, and stops with its process.
"""

from __future__ import annotations

import asyncio
import contextlib

from toolbelt import processes
from toolbelt.front import access_log, messages, signals
from toolbelt.runtime import feed
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections

# The maximum time that each part of the process may delay its end; each plugin also has its own limit.
GRACE = 30.0


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

    async def end(self) -> None:
        """Write the access log, stop what the process runs, and close the database connections."""
        await feed.close()
        self._access_log.write()
        await asyncio.to_thread(processes.stop_all, self._grace)
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
                    until_the_end.enter_context(process_connections.hosted())
                    processes.start_all("server")
                    until_the_end.enter_context(signals.call_on_stop(feed.end))
                    await send({"type": "lifespan.startup.complete"})
                else:
                    await self.end()
                    await send({"type": "lifespan.shutdown.complete"})
                    return
