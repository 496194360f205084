"""Does the recipe for LlamaIndex run as it is documented?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import documented
from llama_index.core.base.llms import types
from llama_index.core.llms import mock


def test_the_model_gets_tools_and_policy_and_calls() -> None:
    seen: list[str] = []

    def reply(messages: Any, **more: Any) -> AsyncIterator[types.ChatMessage]:
        seen.append("\n".join(str(message.content) for message in messages))
        call = types.ToolCallBlock(tool_call_id="c1", tool_name="desk__add", tool_kwargs={"a": 2, "b": 3})
        block = call if len(seen) == 1 else types.TextBlock(text="Five.")

        async def said() -> AsyncIterator[types.ChatMessage]:
            yield types.ChatMessage(role="assistant", blocks=[block])

        return said()

    model = mock.MockFunctionCallingLLM(response_generator=reply)
    answer = documented.recipe("LlamaIndex", model=model)["answer"]
    assert asyncio.run(answer("What is it?")) == "Five."
    assert "Never add in your head" in seen[0]
    assert '{"sum":5}' in seen[1]
