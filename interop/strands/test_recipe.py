"""Does the recipe for Strands run as it is documented?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import documented
from strands import models


class Scripted(models.Model):
    """Calls in its first reply, and answers in its second."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def update_config(self, **given: Any) -> None:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **more: Any
    ) -> AsyncIterator[dict[str, Any]]:
        self.seen.append((str(system_prompt), str(messages)))
        calls = len(self.seen) == 1
        start = {"toolUse": {"name": "desk__add", "toolUseId": "c1"}} if calls else {}
        delta = {"toolUse": {"input": '{"a": 2, "b": 3}'}} if calls else {"text": "Five."}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def test_the_model_gets_tools_and_policy_and_calls() -> None:
    model = Scripted()
    answer = documented.recipe("Strands", model=model)["answer"]
    assert answer("What is it?").strip() == "Five."
    assert "Never add in your head" in model.seen[0][0]
    assert '{"sum":5}' in model.seen[1][1]
