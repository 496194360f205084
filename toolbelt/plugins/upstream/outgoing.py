"""The capabilities that are announced to a server: that users can be asked, only where that is allowed.

From 2026-07-28, the official client announces with each request what it has callbacks for. Whether a user may be asked
differs between calls, so the announcement is corrected here.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types

from toolbelt.plugins.upstream import client_features


@contextlib.asynccontextmanager
async def adjusted(transport: AbstractAsyncContextManager[Any], *, may_ask: bool) -> AsyncIterator[Any]:
    """Open a transport and yield its streams, with corrected announcements in what is sent."""
    async with transport as (read, write):
        yield read, Outgoing(write, may_ask=may_ask)


class Outgoing:
    """A stream of messages to a server. ``may_ask``: an operator lets the server ask users at all."""

    def __init__(self, inner: Any, *, may_ask: bool) -> None:
        self._inner, self._may_ask = inner, may_ask

    async def send(self, item: Any) -> None:
        """Send a message."""
        message = item.message
        if isinstance(message, mcp_types.JSONRPCRequest) and message.params is not None:
            self._adjust(message.method, message.params)
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def _adjust(self, method: str, params: dict[str, Any]) -> None:
        """Let a request announce elicitation only as far as it is allowed. Its parameters belong to it alone."""
        if method == "initialize":
            if not self._may_ask:
                params["capabilities"] = _without_elicitation(params["capabilities"])
            return
        meta = params.get("_meta")
        if meta is None or (announced := meta.get(mcp_types.CLIENT_CAPABILITIES_META_KEY)) is None:
            return
        capabilities = _without_elicitation(announced)
        current = client_features.CURRENT.get()
        features = current.features if current is not None else None
        if features is not None and features.modes:
            capabilities[client_features.ELICITATION] = {mode: {} for mode in sorted(features.modes)}
        params["_meta"] = {**meta, mcp_types.CLIENT_CAPABILITIES_META_KEY: capabilities}


def _without_elicitation(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in capabilities.items() if name != client_features.ELICITATION}
