"""Threads for blocking work that event loops do on behalf of agents, above all database queries."""

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


async def run(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run ``function`` in a thread, with the caller's context variables, and return its result.

    Database connections that it opens count as an agent's, and are closed before this returns.
    """

    def work() -> T:
        try:
            with databases.for_an_agent():
                return function(*arguments, **options)
        finally:
            # SQLite's too, so that the next query notices if the file was moved away.
            connections.close_all()

    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool, context.run, work)
