"""Tests the recipe for Agno as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import recipe
from agno.models import openai


class TestAgno(recipe.PythonChecks):
    heading = "Agno"

    def model(self, address: str) -> Any:
        return openai.OpenAIChat("scripted", base_url=address, api_key="none")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))
