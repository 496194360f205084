"""Tests the recipe for AutoGen as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import recipe
from autogen_ext.models import openai


class TestAutoGen(recipe.PythonChecks):
    heading = "AutoGen"
    lists_each = "step"
    # AutoGen also lists the tools before a call.
    refusal = "tool 'desk__add' not found"

    def model(self, address: str) -> Any:
        info = {
            "family": "unknown",
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "vision": False,
        }
        return openai.OpenAIChatCompletionClient(
            model="scripted", base_url=address, api_key="none", model_info=info
        )

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))
