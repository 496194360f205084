"""Does the recipe for Agno run as it is documented?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import documented
from agno.models import base, response


@dataclass
class Scripted(base.Model):
    """Calls in its first reply, and answers in its second."""

    id: str = "scripted"
    seen: list[str] = field(default_factory=list)

    async def ainvoke(self, *given: Any, messages: Any = (), **more: Any) -> response.ModelResponse:
        self.seen.append("\n".join(str(message.content) for message in messages))
        if len(self.seen) > 1:
            return response.ModelResponse(role="assistant", content="Five.")
        function = {"name": "desk__add", "arguments": '{"a": 2, "b": 3}'}
        call = {"id": "c1", "type": "function", "function": function}
        return response.ModelResponse(role="assistant", tool_calls=[call])

    def invoke(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke


def test_the_model_gets_tools_and_policy_and_calls() -> None:
    model = Scripted()
    answer = documented.recipe("Agno", model=model)["answer"]
    assert asyncio.run(answer("What is it?")) == "Five."
    assert "Never add in your head" in model.seen[0]
    assert '{"sum":5}' in model.seen[1]
