"""In-memory connections for threads and for event loops; they record their requests."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.formats import documents
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

KEY = "shop__refund"


class Toolbelt:
    """An in-memory connection for threads. Every request raises ``error`` if it is set."""

    def __init__(self) -> None:
        self.requests: list[tuple[Any, ...]] = []
        self.error: errors.ToolbeltError | None = None
        self.active, self.policy = [KEY, "clock"], ""
        self.declared: dict[str, Any] = {}
        self.checked: dict[str, Any] = {"would": "run"}
        self.admission: dict[str, Any] = {"is_error": False, "call_id": "c1", "options": {"limit": 50}}

    def blocking(self) -> Toolbelt:
        return self

    def _record(self, *request: Any) -> None:
        self.requests.append(request)
        if self.error is not None:
            raise self.error

    def declare(self, plugin: str, tools: Any) -> Any:
        self._record("declare", plugin, [tool["name"] for tool in tools])
        return {"keys": {tool["name"]: f"shop__{tool['name']}" for tool in tools}, **self.declared}

    def surface(self, run: protocol.Run, *, message: str | None = None) -> Any:
        self._record("surface", run.session)
        directive = documents.focus(KEY) if message else None
        return {
            **documents.document(*self.active, policy=self.policy, directive=directive),
            "active_tools": self.active,
        }

    def check(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        *,
        ask: bool = False,
    ) -> Any:
        self._record("check", tool, arguments, version, ask)
        return self.checked

    def admit(self, run: protocol.Run, tool: str, arguments: Any, version: str = "") -> Any:
        self._record("admit", tool, *([version] if version else []))
        return self.admission

    def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        self._record("report", call_id, outcome.code, outcome.error, outcome.result_bytes)

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> Any:
        self._record("call", tool, arguments)
        return {"is_error": False, "content": {"result": "noon"}}

    def record(
        self, run: protocol.Run, tool: str, arguments: Any, outcome: protocol.Outcome, ago: float
    ) -> None:
        self._record("record", tool, outcome.code, ago >= 0)

    def requests_named(self, *names: str) -> list[tuple[Any, ...]]:
        return [request for request in self.requests if request[0] in names]


class AsyncToolbelt(Toolbelt):
    """The same connection for event loops."""

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in ("declare", "surface", "call", "check", "admit", "report", "record"):
            return method

        async def later(*args: Any, **more: Any) -> Any:
            for _ in range(3):  # lets other tasks run
                await asyncio.sleep(0)
            return method(*args, **more)

        return later
