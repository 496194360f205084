"""Tests the recipe for the Microsoft Agent Framework as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import recipe
from agent_framework import openai


class TestAgentFramework(recipe.PythonChecks):
    heading = "Microsoft Agent Framework"

    def model(self, address: str) -> Any:
        return openai.OpenAIChatCompletionClient("scripted", base_url=address, api_key="none")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))
