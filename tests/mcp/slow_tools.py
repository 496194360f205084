"""A slow tool in place of `calls.arun`: it ends when the test releases it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.mcp.conftest import Client, Request
from toolbelt.runtime import calls, upstream_calls


class Progressing:
    """Replaces `calls.arun`: reports progress, and ends when it is released."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()
        self.begun_twice = asyncio.Event()
        self.was_cancelled = False

    async def arun(
        self, *about: Any, progress: upstream_calls.Progress | None = None, **more: Any
    ) -> calls.Answer:
        if self.begun.is_set():
            self.begun_twice.set()
        self.begun.set()
        if progress is not None:
            await progress(1, 3, "reading")
            await progress(2.5, None, None)
        try:
            await asyncio.wait_for(self.go_on.wait(), 20)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return calls.Result(content={"result": "done"})


def progressing(monkeypatch: pytest.MonkeyPatch) -> Progressing:
    one = Progressing()
    monkeypatch.setattr(calls, "arun", one.arun)
    return one


def calling(client: Client, id_: Any = 1) -> Request:
    params = {"name": "kb__search", "arguments": {"query": "x"}, "_meta": {"progressToken": "t1"}}
    return client.request("tools/call", params, id_=id_)
