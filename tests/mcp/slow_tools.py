"""A slow tool in place of `calls.answer`: it ends when the test releases it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.mcp.conftest import Client, Request
from toolbelt.runtime import calls


class SlowTool:
    """Replaces `calls.answer`: reports progress, and ends when it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.started = asyncio.Event()
        self.started_twice = asyncio.Event()
        self.was_cancelled = False

    async def answer(self, call: calls.Call, caller: calls.Caller) -> calls.Answer:
        if self.started.is_set():
            self.started_twice.set()
        self.started.set()
        if call.progress is not None:
            await call.progress(1, 3, "reading")
            await call.progress(2.5, None, None)
        try:
            await asyncio.wait_for(self.released.wait(), 20)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return calls.Result(content={"result": "done"})


def slow_tool(monkeypatch: pytest.MonkeyPatch) -> SlowTool:
    tool = SlowTool()
    monkeypatch.setattr(calls, "answer", tool.answer)
    return tool


def call_request(client: Client, id_: Any = 1) -> Request:
    params = {"name": "kb__search", "arguments": {"query": "x"}, "_meta": {"progressToken": "t1"}}
    return client.request("tools/call", params, id_=id_)
