"""Does the recipe for the Microsoft Agent Framework run as it is documented?"""

from __future__ import annotations

import asyncio
from typing import Any

import agent_framework as framework
import documented
from agent_framework import _tools


class Scripted(_tools.FunctionInvocationLayer, framework.BaseChatClient):
    """Calls in its first reply, and answers in its second."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, str]] = []

    async def _inner_get_response(self, *, messages: Any, options: Any, **more: Any) -> Any:
        contents = [content.to_dict() for message in messages for content in message.contents]
        self.seen.append((options.get("instructions"), str(contents)))
        call = framework.Content.from_function_call(
            call_id="c1", name="desk__add", arguments={"a": 2, "b": 3}
        )
        reply: list[Any] = [call] if len(self.seen) == 1 else ["Five."]
        return framework.ChatResponse(messages=[framework.Message(role="assistant", contents=reply)])


def test_the_model_gets_tools_and_policy_and_calls() -> None:
    model = Scripted()
    answer = documented.recipe("Microsoft Agent Framework", model=model)["answer"]
    assert asyncio.run(answer("What is it?")) == "Five."
    assert "Never add in your head" in str(model.seen[0])
    assert "sum" in model.seen[1][1]
