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
    framework_tools = frozenset({"final_answer"})

    def model(self, address: str) -> Any:
        return smolagents.OpenAIModel("scripted", api_base=address, api_key="none")

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return recipe["answer"](message)

    def results(self, request: model.ModelRequest) -> list[str]:
        # smolagents describes calls and results in messages, and joins those of the user to one text.
        texts = [
            part["text"]
            for message in request.body["messages"]
            if message["role"] == "user"
            for part in message["content"]
        ]
        return re.split(r"^(?:Observation|Error):\n", "\n".join(texts), flags=re.MULTILINE)[1:]

    def format_reply(self, reply: scenario.Reply, request: model.ModelRequest) -> model.Reply:
        if isinstance(reply, str):
            # A run ends when the model calls this tool.
            return model.Reply(tool="final_answer", arguments={"answer": reply})
        return super().format_reply(reply, request)
