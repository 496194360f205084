"""Tests that a call reads the state when it arrives and again directly before its tool runs."""

from __future__ import annotations

import asyncio
import types
from typing import Any

from toolbelt.mcp import ongoing_call
from toolbelt.runtime import calls
from toolbelt.runtime.surfaces import request_contexts


class RecordingContexts:
    """Request contexts that record their requests."""

    def __init__(self) -> None:
        self.requests: list[request_contexts.RequestKey] = []

    async def of(self, token: str, key: request_contexts.RequestKey) -> Any:
        self.requests.append(key)
        return "read again"


def read_twice(state: str | None, *, kind: str = "agent") -> tuple[list[Any], int]:
    """Return what a call reads when it reads the state twice, and the number of database reads."""
    known: Any = RecordingContexts()
    context: Any = types.SimpleNamespace(
        probed=types.SimpleNamespace(state=types.SimpleNamespace(state=state))
    )
    call = ongoing_call.OngoingCall(
        head=types.SimpleNamespace(token="t", agent="ada", session="s1"),  # type: ignore[arg-type]
        bearer=types.SimpleNamespace(kind=kind),  # type: ignore[arg-type]
        call=calls.Call(key=calls.RequestKey("ada", "s1", "r1"), tool="kb__search", arguments={}),
        contexts=known,
        context=context,
    )

    async def twice() -> list[Any]:
        return [
            "read on arrival" if seen is context else seen
            for seen in [await call._probe(), await call._probe()]
        ]

    return asyncio.run(twice()), len(known.requests)


def test_the_state_is_read_again_only_before_the_tool_runs() -> None:
    assert read_twice(None) == (["read on arrival", "read again"], 1)


def test_the_state_is_read_each_time_if_the_session_may_name_the_request() -> None:
    assert read_twice('{"r1": "on"}') == (["read again", "read again"], 2)


def test_an_operator_s_call_is_checked_in_a_thread() -> None:
    assert read_twice(None, kind="operator") == ([None, None], 0)
