"""Connections in memory, for threads and for event loops, which note their requests."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.adapters import documents
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

KEY = "shop__refund"


class Toolbelt:
    """A connection in memory, for both kinds; ``error`` is raised by every request."""

    def __init__(self) -> None:
        self.requests: list[tuple[Any, ...]] = []
        self.error: errors.ToolbeltError | None = None
        self.active, self.policy = [KEY, "clock"], ""
        self.admission: dict[str, Any] = {"is_error": False, "call_id": "c1", "options": {"limit": 50}}

    def blocking(self) -> Toolbelt:
        return self

    def _note(self, *request: Any) -> None:
        self.requests.append(request)
        if self.error is not None:
            raise self.error

    def declare(self, plugin: str, tools: Any) -> Any:
        self._note("declare", plugin, [tool["name"] for tool in tools])
        return {"keys": {tool["name"]: f"shop__{tool['name']}" for tool in tools}}

    def surface(self, run: protocol.Run, *, message: str | None = None) -> Any:
        self._note("surface", run.session)
        directive = documents.focus(KEY) if message else None
        return {
            **documents.document(*self.active, policy=self.policy, directive=directive),
            "active_tools": self.active,
        }

    def admit(self, run: protocol.Run, tool: str, arguments: Any) -> Any:
        self._note("admit", tool)
        return self.admission

    def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        self._note("report", call_id, outcome.code, outcome.error, outcome.result_bytes)

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> Any:
        self._note("call", tool, arguments)
        return {"is_error": False, "content": {"result": "noon"}}

    def record(
        self, run: protocol.Run, tool: str, arguments: Any, outcome: protocol.Outcome, ago: float
    ) -> None:
        self._note("record", tool, outcome.code, ago >= 0)

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        return [request for request in self.requests if request[0] in names]


class Looping(Toolbelt):
    """The same for event loops."""

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in ("declare", "surface", "call", "admit", "report", "record"):
            return method

        async def later(*args: Any, **more: Any) -> Any:
            for _ in range(3):  # other tasks go on meanwhile
                await asyncio.sleep(0)
            return method(*args, **more)

        return later
