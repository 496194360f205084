"""Tests the recipe for mcp-use as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import langchain_openai
import recipe


class TestMcpUse(recipe.PythonChecks):
    heading = "mcp-use"
    # mcp-use offers resources as tools, here the policy.
    framework_tools = frozenset({"policy"})

    def model(self, address: str) -> Any:
        return langchain_openai.ChatOpenAI(model="scripted", base_url=address, api_key="none")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))
