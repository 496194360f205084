"""Tests the recipe for LlamaIndex as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import recipe
from llama_index.llms import openai_like


class TestLlamaIndex(recipe.PythonChecks):
    heading = "LlamaIndex"

    def model(self, address: str) -> Any:
        return openai_like.OpenAILike(
            "scripted",
            api_base=address,
            api_key="none",
            is_chat_model=True,
            is_function_calling_model=True,
        )

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))
