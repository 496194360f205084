"""Tests the recipe for Semantic Kernel as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import recipe
from semantic_kernel.connectors.ai import open_ai


class TestSemanticKernel(recipe.PythonChecks):
    heading = "Semantic Kernel"
    prefix = "toolbelt-"
    # The plugin class has a method call_tool, so Semantic Kernel leaves out the tool of that name.
    toolbelt_tools = frozenset({recipe.SEARCH.name})

    def model(self, address: str) -> Any:
        client = openai.AsyncOpenAI(base_url=address, api_key="none")
        return open_ai.OpenAIChatCompletion("scripted", async_client=client)

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))

    def test_what_the_agent_may_load_is_found_and_called(self) -> None:
        run = self.play(recipe.SEARCH, recipe.DISPATCH, "I cannot.")
        search_result, refusal = self.results(run.requests[2])
        assert "desk__add_note" in search_result
        assert "not part of the provided tools" in refusal
