"""A cache of values that are expensive to compute: each is computed once, in a thread, for all waiting callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from toolbelt.core import caches


class Sized(Protocol):
    """A value that knows its size in bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


class ByteCache(caches.LruCache[Hashable, T]):
    """Values by key, up to ``limit`` bytes in total. For one event loop."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda value: value.size)
        self._under_way: dict[Hashable, asyncio.Task[T]] = {}

    async def get_or_compute(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value, computed in a thread if it is not cached; concurrent requests share one computation."""
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(compute))
            self._under_way[key] = task
            task.add_done_callback(lambda finished: self._store(key, finished))
        return await asyncio.shield(task)

    def _store(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._under_way[key]
        if not task.cancelled() and task.exception() is None:
            self.put(key, task.result())
