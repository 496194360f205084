"""Which calls are under way, and which of them does nobody want any more? (``notifications/cancelled``)

The notification is a request of its own, and any process of the server may get it. One that does not run the call
writes it down; one that runs calls which take long reads, now and then, what was written of them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json

import structlog

from toolbelt.mcp import calling, heads, protocol
from toolbelt.runtime import calls, cancellations, threads

# How soon a call ends that was taken back in another process. A shorter one costs no query.
SECONDS = 0.5

_log = structlog.get_logger(__name__)

Task = asyncio.Task[calls.Answer]


class Running:
    """The calls that are under way in this process, so that their clients can take them back. For one event loop."""

    def __init__(self) -> None:
        self._calls: dict[str, set[Task]] = {}
        # Those that may be taken back in another process, and since when the latest under each key runs.
        self._begun: dict[str, dt.datetime] = {}
        self._reader: asyncio.Task[None] | None = None
        self._trouble = ""

    def begin(self, call: calling.Call, id_: protocol.Id) -> Task:
        """Begin a call that was made under this id."""
        task = asyncio.create_task(call.run())
        key = _key(call.head, id_)
        self._calls.setdefault(key, set()).add(task)
        if call.head.client_session:
            self._begun[key] = cancellations.begun()
            if self._reader is None:
                self._reader = asyncio.create_task(self._read())

        def ended(done: Task) -> None:
            under_way = self._calls[key]
            under_way.discard(done)
            if not under_way:
                del self._calls[key]
                self._begun.pop(key, None)
            if not self._begun and self._reader is not None:
                self._reader.cancel()
                self._reader = None
            # If nobody waits for it any more, nobody asks what became of it.
            if not done.cancelled():
                done.exception()

        task.add_done_callback(ended)
        return task

    async def cancel(self, head: heads.Head, id_: object) -> None:
        """Cancel the call that this client made under the id, wherever it runs.

        Clients that send no session's id look alike: where two of them use the same id at once, neither is cancelled,
        and of those that other processes run none is.
        """
        if not isinstance(id_, str | int):
            return
        key = _key(head, id_)
        under_way = self._calls.get(key, set())
        if head.client_session or len(under_way) == 1:
            for task in under_way:
                task.cancel()
        if head.client_session and not under_way:
            await threads.run(cancellations.cancel, key)

    async def _read(self) -> None:
        """Read what other processes were told, as long as there is a call that it may be about."""
        while True:
            await asyncio.sleep(SECONDS)
            await self._end_those_not_wanted()

    async def _end_those_not_wanted(self) -> None:
        try:
            keys = await threads.run(cancellations.cancelled, dict(self._begun))
        except Exception as error:
            # It is asked again in a moment, and the calls go on until then. It is said once, for it may last.
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.exception("cancellations not read")
            return
        self._trouble = ""
        for key in keys:
            for task in self._calls.get(key, ()):
                task.cancel()


def _key(head: heads.Head, id_: protocol.Id) -> str:
    """Say which call is meant: nobody takes back another's. 1 is not "1", nor true."""
    meant = (head.token, head.agent, head.session, head.client_session, type(id_).__name__, id_)
    return hashlib.sha256(json.dumps(meant).encode()).hexdigest()
