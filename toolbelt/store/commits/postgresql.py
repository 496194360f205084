"""Watching PostgreSQL, which notifies listeners of each commit.

A trigger on the revision sends the notification, so every writer sends it, and a transaction that is rolled back does
not. Behind a pooler that changes connections between transactions, no notification arrives; the state is therefore also
polled, and more often once a change was found without a notification.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import psycopg
from psycopg import sql

from toolbelt.store import commits, triggers
from toolbelt.store.state_probe import postgresql

# The maximum time of a statement.
SECONDS = 5.0
# How often to poll, and how often where notifications do not arrive.
POLL_SECONDS, POLL_SECONDS_WITHOUT_NOTIFICATIONS = 1.0, 0.1

_STATEMENT = commits.statement("%s").encode()


def watch(connection: Any) -> Watch:
    """Return a watch of the database of Django's connection."""
    parameters = {**postgresql.parameters(connection), "prepare_threshold": None}
    return Watch(parameters, connection.settings_dict["OPTIONS"].get("assume_role"))


class Watch:
    """Watches one database: the :class:`commits.Watch` of PostgreSQL, for one event loop."""

    def __init__(self, parameters: dict[str, Any], role: str | None = None) -> None:
        self._parameters = parameters
        self._role = role
        self._open: psycopg.AsyncConnection[Any] | None = None
        self._state: commits.State | None = None
        self._was_notified = True
        self._pause = POLL_SECONDS

    async def wait(self, seconds: float) -> None:
        """Wait for a notification."""
        self._was_notified = False
        if self._open is None:
            return
        try:
            async for _ in self._open.notifies(timeout=min(seconds, self._pause), stop_after=1):
                self._was_notified, self._pause = True, POLL_SECONDS
        except (psycopg.Error, OSError) as error:
            await self._disconnect()
            raise commits.UnreachableError(str(error)) from error

    async def read(self) -> commits.State:
        """Return the state, reading what moved since the last time."""
        try:
            async with asyncio.timeout(SECONDS):
                state = await self._read_state()
        except (psycopg.Error, OSError, TimeoutError) as error:
            await self._disconnect()
            raise commits.UnreachableError(str(error) or f"no answer within {SECONDS:g} s") from error
        if self._state is not None and state.number != self._state.number and not self._was_notified:
            self._pause = POLL_SECONDS_WITHOUT_NOTIFICATIONS
        self._state = state
        return state

    async def close(self) -> None:
        """Close the connection."""
        await self._disconnect()

    async def _read_state(self) -> commits.State:
        if self._open is None:
            # The earlier state may belong to another database.
            self._state = None
            self._open = await self._listen()
        state = None
        if self._state is not None:
            state = commits.merged(self._state, await _rows(self._open, self._state.number))
        if state is None:
            state = commits.full_state(await _rows(self._open, commits.FROM_START))
        if self._state is None or state.number != self._state.number:
            cursor = await self._open.execute(commits.ENDS.encode())
            state = dataclasses.replace(state, ends=commits.ends(await cursor.fetchall()))
        return state

    async def _listen(self) -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(**self._parameters, autocommit=True)
        try:
            if self._role:
                await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(triggers.CHANNEL)))
        except BaseException:
            # Nothing else would close it if the task was cancelled.
            await connection.close()
            raise
        return connection

    async def _disconnect(self) -> None:
        if self._open is not None:
            connection, self._open = self._open, None
            await connection.close()


async def _rows(opened: psycopg.AsyncConnection[Any], since: int) -> list[tuple[Any, ...]]:
    cursor = await opened.execute(_STATEMENT, [since])
    return await cursor.fetchall()
