"""How is the database asked from an event loop? In a thread of its own, which lets go of it then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django import db

from toolbelt.runtime import access

P = ParamSpec("P")
T = TypeVar("T")


@asynccontextmanager
async def one_thread() -> AsyncIterator[None]:
    """Let all that is synchronous within run in one thread of its own, as Django does for a request."""
    async with ThreadSensitiveContext():
        try:
            with access.for_an_agent():
                yield
        finally:
            await sync_to_async(db.close_old_connections)()


async def run(act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do it in a thread."""

    def acted() -> Any:
        try:
            with access.for_an_agent():
                return act(*arguments, **named)
        finally:
            db.close_old_connections()

    async with ThreadSensitiveContext():
        found: T = await sync_to_async(acted)()
        return found


async def within(act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do it in the thread of :func:`one_thread`."""
    found: T = await sync_to_async(act)(*arguments, **named)
    return found
