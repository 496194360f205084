"""How does one hear of commits to PostgreSQL? It notifies whoever listens, in the moment of the commit.

A trigger on the revision sends the notification, so whoever writes sends it, and a transaction that is rolled back
sends none. Behind a pooler that gives each transaction another connection no notification arrives; so the state is
read once in a while all the same, and often where that found what no notification told.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import psycopg
from psycopg import sql

from toolbelt.store import commits, triggers
from toolbelt.store.looks import postgresql

# How long a statement may take.
SECONDS = 5.0
# How often to read without having been notified; and where notifications do not arrive.
PAUSE, DEAF_PAUSE = 1.0, 0.1

_STATEMENT = commits.statement("%s").encode()


def watch(connection: Any) -> Watch:
    """Give what watches the database of Django's connection."""
    parameters = {**postgresql.parameters(connection), "prepare_threshold": None}
    return Watch(parameters, connection.settings_dict["OPTIONS"].get("assume_role"))


class Watch:
    """Watches one database. An implementation of :class:`commits.Watch`, for one event loop."""

    def __init__(self, parameters: dict[str, Any], role: str | None = None) -> None:
        self._parameters = parameters
        self._role = role
        self._open: psycopg.AsyncConnection[Any] | None = None
        self._known: commits.State | None = None
        self._was_notified = True
        self._pause = PAUSE

    async def wait(self, seconds: float) -> None:
        """Wait to be notified."""
        self._was_notified = False
        if self._open is None:
            return
        try:
            async for _ in self._open.notifies(timeout=min(seconds, self._pause), stop_after=1):
                self._was_notified, self._pause = True, PAUSE
        except (psycopg.Error, OSError) as error:
            await self._let_go()
            raise commits.Unreachable(str(error)) from error

    async def read(self) -> commits.State:
        """Read what moved since the last reading."""
        try:
            async with asyncio.timeout(SECONDS):
                found = await self._found()
        except (psycopg.Error, OSError, TimeoutError) as error:
            await self._let_go()
            raise commits.Unreachable(str(error) or f"no answer within {SECONDS:g} s") from error
        if self._known is not None and found.number != self._known.number and not self._was_notified:
            self._pause = DEAF_PAUSE
        self._known = found
        return found

    async def close(self) -> None:
        """Close the connection."""
        await self._let_go()

    async def _found(self) -> commits.State:
        if self._open is None:
            # Whatever was known may be of another database by now.
            self._known = None
            self._open = await self._listening()
        found = None
        if self._known is not None:
            found = commits.merged(self._known, await _rows(self._open, self._known.number))
        if found is None:
            found = commits.whole(await _rows(self._open, commits.EVER))
        if self._known is None or found.number != self._known.number:
            cursor = await self._open.execute(commits.ENDS.encode())
            found = dataclasses.replace(found, ends=commits.ends(await cursor.fetchall()))
        return found

    async def _listening(self) -> psycopg.AsyncConnection[Any]:
        opened = await psycopg.AsyncConnection.connect(**self._parameters, autocommit=True)
        try:
            if self._role:
                await opened.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))
            await opened.execute(sql.SQL("LISTEN {}").format(sql.Identifier(triggers.CHANNEL)))
        except BaseException:
            # Whoever followed may be gone by now, and with them whoever would close it.
            await opened.close()
            raise
        return opened

    async def _let_go(self) -> None:
        if self._open is not None:
            opened, self._open = self._open, None
            await opened.close()


async def _rows(opened: psycopg.AsyncConnection[Any], since: int) -> list[tuple[Any, ...]]:
    cursor = await opened.execute(_STATEMENT, [since])
    return await cursor.fetchall()
