"""The state of plugins: JSON values in the database, accessed from the plugins' event loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from toolbelt.store import plugin_state

T = TypeVar("T")

MAX_KEY_LENGTH = 200


class State:
    """The values of one namespace. Implements :class:`contract.State`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value, or ``default`` if there is none."""
        return await _in_thread(plugin_state.get, self._namespace, key, default)

    async def set(self, key: str, value: Any) -> None:
        """Store a value that JSON can represent."""
        if not 0 < len(key) <= MAX_KEY_LENGTH:
            raise ValueError(f"a state key has 1 to {MAX_KEY_LENGTH} characters")
        # Converted here, so that an unsupported value raises in the plugin, and a tuple becomes a list.
        await _in_thread(
            plugin_state.put, self._namespace, key, json.loads(json.dumps(value, allow_nan=False))
        )

    async def delete(self, key: str) -> bool:
        """Delete the value. Return whether there was one."""
        return await _in_thread(plugin_state.delete, self._namespace, key)

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        """Return the values whose keys begin with ``prefix``, in key order."""
        return await _in_thread(plugin_state.pairs, self._namespace, prefix)


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    return await sync_to_async(_and_close, thread_sensitive=False)(function, *arguments)


def _and_close(function: Callable[..., T], *arguments: Any) -> T:
    """Call the function, then close this thread's connections, which Django would only close after a request."""
    try:
        return function(*arguments)
    finally:
        connections.close_all()
