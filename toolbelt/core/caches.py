"""The cache of everything that is kept in a process up to a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """Keeps values whose sizes add up to at most ``limit``; the least recently used ones make room.

    ``size_of`` returns the size of a value; without it, the limit is a number of values. For any number of threads.
    """

    def __init__(self, limit: int, size_of: Callable[[_Value], int] = lambda value: 1) -> None:
        self.limit, self.size = limit, 0
        self._size_of = size_of
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[_Key]:
        """List the keys, the least recently used first."""
        return iter(tuple(self._values))

    def get(self, key: _Key) -> _Value | None:
        """Return the value, if it is still there."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value."""
        with self._lock:
            self._remove(key)
            self._values[key] = value
            self.size += self._size_of(value)
            while self.size > self.limit:
                self._remove(next(iter(self._values)))

    def pop(self, key: _Key) -> _Value | None:
        """Remove and return the value, if it is still there."""
        with self._lock:
            return self._remove(key)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._values.clear()
            self.size = 0

    def _remove(self, key: _Key) -> _Value | None:
        value = self._values.pop(key, None)
        if value is not None:
            self.size -= self._size_of(value)
        return value
