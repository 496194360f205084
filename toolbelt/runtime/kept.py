"""How are things kept that take long to make? Made once, in a thread, for all who wait; the oldest go first."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Something that says how many bytes it takes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


class Kept(Generic[T]):
    """Things by the place that decides about all of them, up to ``most`` bytes. For one event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Task[T]] = {}

    def __iter__(self) -> Iterator[Hashable]:
        """List the places, the one that was not asked for longest first."""
        return iter(self._kept)

    def get(self, place: Hashable) -> T | None:
        """Give what is kept there, if anything is."""
        found = self._kept.get(place)
        if found is not None:
            self._kept.move_to_end(place)
        return found

    async def made(self, place: Hashable, make: Callable[[], T]) -> T:
        """Make it in a thread, for that takes as long as it is large; once for all who wait for it."""
        task = self._under_way.get(place)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(make))
            self._under_way[place] = task
            task.add_done_callback(lambda done: self._keep(place, done))
        return await asyncio.shield(task)

    def _keep(self, place: Hashable, done: asyncio.Task[T]) -> None:
        del self._under_way[place]
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[place] = done.result()
        self.size += done.result().size
        while self.size > self.most:
            self.size -= self._kept.popitem(last=False)[1].size
