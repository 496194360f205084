"""Threads in which an event loop has blocking work done on behalf of agents: what asks the database, above all."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

from toolbelt.store import databases

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS = 16

_pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="toolbelt-agents")


async def run(act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what ``act`` returns, run in a thread with the context variables of the caller.

    Whatever connection to the database it takes counts as an agent's, and is given back before this returns.
    """

    def acted() -> T:
        try:
            with databases.for_an_agent():
                return act(*arguments, **named)
        finally:
            # SQLite's, too: a file that was moved away is to be missed by the next who asks.
            connections.close_all()

    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool, context.run, acted)
