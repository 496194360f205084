"""What has a plugin kept? Its values in the database, asked for from the plugins' event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from toolbelt.store import plugin_state

T = TypeVar("T")

LONGEST_KEY = 200


class State:
    """The values of one namespace. An implementation of :class:`contract.State`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    async def get(self, key: str, default: Any = None) -> Any:
        """Give the value, ``default`` where there is none."""
        return await _in_thread(plugin_state.get, self._namespace, key, default)

    async def set(self, key: str, value: Any) -> None:
        """Keep a value that JSON can say."""
        if not 0 < len(key) <= LONGEST_KEY:
            raise ValueError(f"a key of the state is 1 to {LONGEST_KEY} characters")
        # As a database reads it: the plugin learns here what it cannot keep, and what a tuple becomes.
        await _in_thread(
            plugin_state.put, self._namespace, key, json.loads(json.dumps(value, allow_nan=False))
        )

    async def delete(self, key: str) -> bool:
        """Forget the value; say whether there was one."""
        return await _in_thread(plugin_state.delete, self._namespace, key)

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        """Give the values whose key begins so, in key order."""
        return await _in_thread(plugin_state.pairs, self._namespace, prefix)


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    return await sync_to_async(_and_close, thread_sensitive=False)(function, *arguments)


def _and_close(function: Callable[..., T], *arguments: Any) -> T:
    """Do it on a connection of this thread's own, and give that back: no request ends here that would do so."""
    try:
        return function(*arguments)
    finally:
        connections.close_all()
