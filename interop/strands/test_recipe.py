"""Tests the recipe for Strands as it is documented."""

from __future__ import annotations

from typing import Any

import recipe
from strands.models import openai


class TestStrands(recipe.PythonChecks):
    heading = "Strands"

    def model(self, address: str) -> Any:
        return openai.OpenAIModel(client_args={"base_url": address, "api_key": "none"}, model_id="scripted")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return str(recipe["answer"](message)).strip()
