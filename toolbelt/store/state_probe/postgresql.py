"""The probe of PostgreSQL: one connection that all requests of an event loop share.

While a statement runs, requests gather; the next statement reads for all of them. Each probe therefore starts after its
request arrived, and the cost of a request decreases with load. The statement is prepared, because planning takes
several times as long as running it. A server that does not answer is tried again after a pause; until then, requests
fail immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg import waiting

from toolbelt.store import state_probe

# The maximum time of a probe, and how long to wait before trying again when a server could not be reached. What follows
# (the last known state, or Django's connection) has to be answered within 5 seconds of the request, too.
SECONDS = 1.5
PAUSE_SECONDS = 3.0

# Errors of a pooler that changes connections between transactions and does not support prepared statements.
_POOLER_ERRORS = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)

T = TypeVar("T")
_Request = tuple[str, str, str | None]
_Waiting = dict[_Request, asyncio.Future[state_probe.ProbeResult | None]]


def open_probe(connection: Any) -> StateProbe | None:
    """Return a probe of Django's database; None if Django assumes a role, which the probe would not."""
    options = connection.settings_dict["OPTIONS"]
    if options.get("assume_role"):
        return None
    return StateProbe({**parameters(connection), "prepare_threshold": options.get("prepare_threshold", 0)})


def parameters(connection: Any) -> dict[str, Any]:
    """Return the parameters of a connection to Django's database."""
    parameters_: dict[str, Any] = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters_.pop(name, None)
    return parameters_


class Connection(psycopg.AsyncConnection[Any]):
    """A connection that stops waiting at once if it is cancelled."""

    async def wait(self, gen: Generator[Any, Any, T], interval: float = 0.1, *more: Any, **options: Any) -> T:
        """Wait for a statement. psycopg would cancel it at the server first, which does not answer if it hangs."""
        return await waiting.wait_async(gen, self.pgconn.socket, interval, *more, **options)


class StateProbe:
    """Reads one database: the :class:`state_probe.StateProbe` of PostgreSQL, for one event loop at a time."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters
        self._open: psycopg.AsyncRawCursor[Any] | None = None
        self._waiting: _Waiting = {}
        self._at_work: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._trouble = ""
        self._statement = state_probe.with_token(
            "unnest($1::text[], $2::text[], $3::text[]) AS q(prefix, agent, session) CROSS JOIN",
            "q.prefix",
            "q.agent",
            "q.session",
            "q.prefix, q.agent, q.session,",
        ).encode()

    async def read(self, prefix: str, agent: str, session: str | None) -> state_probe.ProbeResult | None:
        """Read with the next statement."""
        loop = asyncio.get_running_loop()
        if self._open is None and loop.time() < self._not_before:
            raise state_probe.UnreachableError(self._trouble)
        request = (prefix, agent, session)
        answer = self._waiting.get(request)
        if answer is None:
            answer = self._waiting[request] = loop.create_future()
        if self._at_work is None or self._at_work.done():
            self._at_work = loop.create_task(self._work())
        # Shielded, because others may wait for the same answer.
        return await asyncio.shield(answer)

    async def close(self) -> None:
        """Close the connection, after the statements that are running."""
        if self._at_work is not None and not self._at_work.done():
            await self._at_work
        await self._disconnect()

    async def _work(self) -> None:
        while self._waiting:
            requests, self._waiting = self._waiting, {}
            try:
                async with asyncio.timeout(SECONDS):
                    results = await self._results(list(requests))
            except Exception as error:
                # Any error, including a defect: no request may wait forever.
                if isinstance(error, _POOLER_ERRORS):
                    self._parameters["prepare_threshold"] = None
                self._trouble = str(error) or f"no answer within {SECONDS:g} s"
                self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
                await self._disconnect()
                for answer in requests.values():
                    answer.set_exception(state_probe.UnreachableError(self._trouble))
            except asyncio.CancelledError:
                # The event loop ends, with everything that waits; another loop starts again.
                for answer in (*requests.values(), *self._waiting.values()):
                    answer.cancel()
                self._waiting = {}
                await self._disconnect()
                raise
            else:
                for request, answer in requests.items():
                    answer.set_result(results.get(request))

    async def _results(self, requests: list[_Request]) -> dict[_Request, state_probe.ProbeResult]:
        """Return the results by request; over a new connection, if the open one was lost."""
        columns = [list(column) for column in zip(*requests, strict=True)]
        was_open = self._open is not None
        try:
            return await self._read(columns)
        except psycopg.OperationalError:
            if not was_open or self._open is None or not self._open.connection.closed:
                raise
        await self._disconnect()
        return await self._read(columns)

    async def _read(self, columns: list[list[str | None]]) -> dict[_Request, state_probe.ProbeResult]:
        if self._open is None:
            connection = await Connection.connect(**self._parameters, autocommit=True)
            self._open = psycopg.AsyncRawCursor(connection)
        await self._open.execute(self._statement, columns)
        return {row[:3]: state_probe.from_row(row[3:]) for row in await self._open.fetchall()}

    async def _disconnect(self) -> None:
        if self._open is not None:
            await self._open.connection.close()
            self._open = None
