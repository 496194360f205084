"""Tests the recipe for Haystack as it is documented."""

from __future__ import annotations

from typing import Any

import recipe
from haystack.components.generators import chat
from haystack.utils import Secret


class TestHaystack(recipe.PythonChecks):
    heading = "Haystack"

    def model(self, address: str) -> Any:
        return chat.OpenAIChatGenerator(Secret.from_token("none"), "scripted", api_base_url=address)

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return recipe["answer"](message)
