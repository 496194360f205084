"""How is PostgreSQL looked at from an event loop? Over one connection, which everyone who waits shares.

While a statement is under way, questions gather; the next statement looks for all of them at once. So each look begins
after its question arrived, and the busier it gets, the less a question costs. The statement is prepared, since planning
it takes several times as long as running it. A server that does not answer is asked again after a while; until then,
whoever asks is told at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from toolbelt.store import looks

# How long a look may take, and how long to leave a server alone that could not be reached.
SECONDS = 2.0
PAUSE = 1.0

# What a pooler answers that gives each transaction another connection, and does not know of prepared statements.
_NOT_KEPT = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)

_Asked = tuple[str, str, str | None]
_Waiting = dict[_Asked, asyncio.Future[looks.Seen | None]]


def eyes(connection: Any) -> Eyes | None:
    """Give the eyes of Django's connection; None where it takes a role that this one would not take."""
    options = connection.settings_dict["OPTIONS"]
    if options.get("assume_role"):
        return None
    return Eyes({**parameters(connection), "prepare_threshold": options.get("prepare_threshold", 0)})


def parameters(connection: Any) -> dict[str, Any]:
    """Give what makes a connection to where Django's goes."""
    found: dict[str, Any] = connection.get_connection_params()
    for django_s_own in ("cursor_factory", "context", "prepare_threshold"):
        found.pop(django_s_own, None)
    return found


class Eyes:
    """Looks at one database. An implementation of :class:`looks.Eyes`, for one event loop at a time."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters
        self._open: psycopg.AsyncRawCursor[Any] | None = None
        self._waiting: _Waiting = {}
        self._at_work: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._trouble = ""
        self._statement = looks.with_token(
            "unnest($1::text[], $2::text[], $3::text[]) AS q(prefix, agent, session) CROSS JOIN",
            "q.prefix",
            "q.agent",
            "q.session",
            "q.prefix, q.agent, q.session,",
        ).encode()

    async def look(self, prefix: str, agent: str, session: str | None) -> looks.Seen | None:
        """Look with the next statement."""
        loop = asyncio.get_running_loop()
        if self._open is None and loop.time() < self._not_before:
            raise looks.Unreachable(self._trouble)
        asked = (prefix, agent, session)
        answer = self._waiting.get(asked)
        if answer is None:
            answer = self._waiting[asked] = loop.create_future()
        if self._at_work is None or self._at_work.done():
            self._at_work = loop.create_task(self._work())
        # Others may wait for the same answer, and go on waiting when this one does not.
        return await asyncio.shield(answer)

    async def close(self) -> None:
        """Close the connection, after the looks that are under way."""
        if self._at_work is not None and not self._at_work.done():
            await self._at_work
        await self._let_go()

    async def _work(self) -> None:
        while self._waiting:
            asking, self._waiting = self._waiting, {}
            try:
                async with asyncio.timeout(SECONDS):
                    found = await self._found(list(asking))
            except Exception as error:
                # Whatever it is, a defect too: nobody is left waiting for an answer that does not come.
                if isinstance(error, _NOT_KEPT):
                    self._parameters["prepare_threshold"] = None
                self._trouble = str(error) or f"no answer within {SECONDS:g} s"
                self._not_before = asyncio.get_running_loop().time() + PAUSE
                await self._let_go()
                for answer in asking.values():
                    answer.set_exception(looks.Unreachable(self._trouble))
            except asyncio.CancelledError:
                # The event loop ends, and all who wait with it; whoever asks on another one begins anew.
                for answer in (*asking.values(), *self._waiting.values()):
                    answer.cancel()
                self._waiting = {}
                await self._let_go()
                raise
            else:
                for asked, answer in asking.items():
                    answer.set_result(found.get(asked))

    async def _found(self, asked: list[_Asked]) -> dict[_Asked, looks.Seen]:
        """Return what was seen, by what was asked; over a new connection, where the one that was open has been cut."""
        columns = [list(column) for column in zip(*asked, strict=True)]
        was_open = self._open is not None
        try:
            return await self._read(columns)
        except psycopg.OperationalError:
            if not was_open or self._open is None or not self._open.connection.closed:
                raise
        await self._let_go()
        return await self._read(columns)

    async def _read(self, columns: list[list[str | None]]) -> dict[_Asked, looks.Seen]:
        if self._open is None:
            connection = await psycopg.AsyncConnection.connect(**self._parameters, autocommit=True)
            self._open = psycopg.AsyncRawCursor(connection)
        await self._open.execute(self._statement, columns)
        return {row[:3]: looks.seen(row[3:]) for row in await self._open.fetchall()}

    async def _let_go(self) -> None:
        if self._open is not None:
            await self._open.connection.close()
            self._open = None
