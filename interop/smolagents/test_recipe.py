"""Tests the recipe for smolagents as it is documented."""

from __future__ import annotations

import re
from typing import Any

import model
import recipe
import scenario
import smolagents


class TestSmolagents(recipe.PythonChecks):
    heading = "smolagents"
    own = frozenset({"final_answer"})

    def model(self, address: str) -> Any:
        return smolagents.OpenAIModel("scripted", api_base=address, api_key="none")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return recipe["answer"](message)

    def results(self, asked: model.Asked) -> list[str]:
        # It describes calls and results in messages, and joins what it has to say as the user to one text.
        spoken = [
            part["text"] for one in asked.body["messages"] if one["role"] == "user" for part in one["content"]
        ]
        return re.split(r"^(?:Observation|Error):\n", "\n".join(spoken), flags=re.MULTILINE)[1:]

    def written(self, reply: scenario.Reply, asked: model.Asked) -> model.Reply:
        if isinstance(reply, str):
            # A run ends when the model calls this tool.
            return model.Reply(tool="final_answer", arguments={"answer": reply})
        return super().written(reply, asked)
