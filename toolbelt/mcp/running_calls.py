"""Running calls, and their cancellation by clients (``notifications/cancelled``).

A cancellation is a separate request, which any process of the server may receive. A process that does not run the call
stores the cancellation, and processes with running calls poll for stored cancellations.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json

import structlog

from toolbelt.mcp import ongoing_call, protocol, request_head
from toolbelt.runtime import calls, threads
from toolbelt.runtime.calls import cancellations

# How often cancellations that other processes received are read. A shorter call costs no query.
POLL_SECONDS = 0.5

_log = structlog.get_logger(__name__)

Task = asyncio.Task[calls.Answer]


class RunningCalls:
    """The running calls of this process, so that clients can cancel them. For one event loop."""

    def __init__(self) -> None:
        self._calls: dict[str, set[Task]] = {}
        # Calls that another process may receive a cancellation for, with the start of the latest call of each key.
        self._begun: dict[str, dt.datetime] = {}
        self._reader: asyncio.Task[None] | None = None
        self._trouble = ""

    def begin(self, call: ongoing_call.OngoingCall, id_: protocol.Id | None) -> Task:
        """Start a call with this request id."""
        task = asyncio.create_task(call.run())
        key = _key(call.head, id_)
        self._calls.setdefault(key, set()).add(task)
        if call.head.client_session:
            self._begun[key] = cancellations.now()
            if self._reader is None:
                self._reader = asyncio.create_task(self._read())

        def forget(task: Task) -> None:
            running = self._calls[key]
            running.discard(task)
            if not running:
                del self._calls[key]
                self._begun.pop(key, None)
            if not self._begun and self._reader is not None:
                self._reader.cancel()
                self._reader = None
            # Mark the exception as retrieved, in case nothing waits for the task anymore.
            if not task.cancelled():
                task.exception()

        task.add_done_callback(forget)
        return task

    async def cancel(self, head: request_head.RequestHead, id_: object) -> None:
        """Cancel this client's call with the request id, in whichever process it runs.

        Clients without a session id cannot be distinguished: if two of them use the same request id at the same time,
        neither call is cancelled, and calls in other processes are not cancelled.
        """
        if not isinstance(id_, str | int):
            return
        key = _key(head, id_)
        running = self._calls.get(key, set())
        if head.client_session or len(running) == 1:
            for task in running:
                task.cancel()
        if head.client_session and not running:
            await threads.run(cancellations.cancel, key)

    async def _read(self) -> None:
        """Read the cancellations that other processes received, while there are running calls."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self._cancel_requested()

    async def _cancel_requested(self) -> None:
        try:
            keys = await threads.run(cancellations.find_requested, dict(self._begun))
        except Exception as error:
            # It is read again in a moment, and the calls continue until then. Logged once, because it may last.
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.exception("cancellations not read")
            return
        self._trouble = ""
        for key in keys:
            for task in self._calls.get(key, ()):
                task.cancel()


def _key(head: request_head.RequestHead, id_: protocol.Id | None) -> str:
    """Return the key of a call, which no other client's call has. The id 1 differs from "1"."""
    identity = (head.token, head.agent, head.session, head.client_session, type(id_).__name__, id_)
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
