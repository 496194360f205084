"""A call reads the state when it arrives and again directly before its tool runs."""

from __future__ import annotations

import asyncio
import types
from typing import Any

from toolbelt.mcp import ongoing_call
from toolbelt.runtime import request_contexts


class Known:
    """Request contexts that count their requests."""

    def __init__(self) -> None:
        self.asked: list[request_contexts.RequestKey] = []

    async def of(self, asked: request_contexts.RequestKey) -> Any:
        self.asked.append(asked)
        return "looked at again"


def looked(state: str | None, *, kind: str = "agent") -> tuple[list[Any], int]:
    """Return what a call sees when it reads the state twice, and the number of database queries."""
    known: Any = Known()
    context: Any = types.SimpleNamespace(
        probed=types.SimpleNamespace(state=types.SimpleNamespace(state=state))
    )
    call = ongoing_call.OngoingCall(
        head=types.SimpleNamespace(token="t", agent="ada", session="s1"),  # type: ignore[arg-type]
        bearer=types.SimpleNamespace(kind=kind),  # type: ignore[arg-type]
        request_id="r1",
        tool="kb__search",
        arguments={},
        by_dispatch=False,
        progress_token=None,
        contexts=known,
        context=context,
    )

    async def twice() -> list[Any]:
        return [
            "as it came in" if seen is context else seen for seen in [await call._look(), await call._look()]
        ]

    return asyncio.run(twice()), len(known.asked)


def test_what_was_seen_as_the_call_came_in_is_not_asked_again_but_before_the_tool_runs() -> None:
    assert looked(None) == (["as it came in", "looked at again"], 1)


def test_a_session_that_may_name_the_request_is_asked_each_time() -> None:
    assert looked('{"r1": "on"}') == (["looked at again", "looked at again"], 2)


def test_an_operators_call_is_always_judged_in_a_thread() -> None:
    assert looked(None, kind="operator") == ([None, None], 0)
