"""What begins and ends with a server? (ASGI's lifespan)

A server that does not speak of its life begins with its first request, and ends with its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

import structlog

from toolbelt.control import endings
from toolbelt.front import messages, notes, signals
from toolbelt.runtime import access, availability, feed, plugins, ready, record_writer

# The longest that plugins hold up the end of a server; each of them has a limit of its own within.
GRACE = 30.0

_log = structlog.get_logger(__name__)


class Life:
    """The life of one server process."""

    def __init__(self, answers: ready.Answers | None, taken: notes.Notes, grace: float = GRACE) -> None:
        self._answers = answers
        self._notes = taken
        self._grace = grace
        self._has_begun = False

    def begin(self) -> None:
        """Start what runs beside the requests, unless it was started."""
        if not self._has_begun:
            self._has_begun = True
            availability.start()
            plugins.start()
            record_writer.start()
            access.start()
            endings.start()

    async def end(self) -> None:
        """End the feed and the writing of ends, write what was noted, let plugins come to their end within the grace
        period, and let go of the database.
        """
        endings.stop()
        await feed.close()
        self._notes.write()
        await _within(plugins.stop, self._grace, "plugins not stopped")
        await _within(record_writer.stop, self._grace, "records of calls not written")
        if self._answers is not None:
            await self._answers.close()

    async def live(self, receive: messages.Receive, send: messages.Send) -> None:
        """Begin and end when the server says so; the feed ends as soon as the server is told to, for as long as
        streams are open, it does not say so.
        """
        with contextlib.ExitStack() as until_the_end:
            while True:
                message = await receive()
                if message["type"] == "lifespan.startup":
                    self.begin()
                    until_the_end.enter_context(signals.heard(feed.end))
                    await send({"type": "lifespan.startup.complete"})
                else:
                    await self.end()
                    await send({"type": "lifespan.shutdown.complete"})
                    return


async def _within(act: Callable[[], None], seconds: float, trouble: str) -> None:
    """Let a thread do it, and wait no longer than that; log ``trouble`` if it fails or does not come to its end."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            act()
        except Exception:
            _log.exception(trouble)
        finally:
            # Too late, there may be nobody left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, name="toolbelt-stop", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        _log.error(trouble, seconds=seconds)
