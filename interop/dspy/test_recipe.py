"""Tests the recipe for DSPy as it is documented."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import dspy
import model
import recipe
import scenario


class TestDSPy(recipe.PythonChecks):
    """The checks of the recipe. DSPy describes the tools in its prompt, and reads calls from the model's text."""

    heading = "DSPy"
    framework_tools = frozenset({"finish"})
    final_answer = ""

    def model(self, address: str) -> Any:
        return dspy.LM("openai/scripted", api_base=address, api_key="none", cache=False)

    def answer(self, recipe: dict[str, Any], message: str) -> str:
        return asyncio.run(recipe["answer"](message))

    def tools(self, request: model.ModelRequest) -> set[str]:
        return {*re.findall(r"^ *\(\d+\) (\w+), whose description", recipe.system(request), re.MULTILINE)}

    def results(self, request: model.ModelRequest) -> list[str]:
        (prompt,) = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
        return re.findall(
            r"\[\[ ## observation_\d+ ## \]\]\n(.*?)\n\n(?=\[\[ ## |Respond )", prompt, re.DOTALL
        )

    def format_reply(self, reply: scenario.Reply, request: model.ModelRequest) -> model.Reply:
        if "next_tool_name" not in recipe.system(request):
            return _fields(reasoning="The run has ended.", answer=self.final_answer)
        if isinstance(reply, str):
            # The answer is requested separately, after this.
            self.final_answer, reply = reply, scenario.Call("finish")
        call = {"next_tool_name": reply.name, "next_tool_args": json.dumps(reply.arguments)}
        return _fields(next_thought="I need a tool.", **call)


def _fields(**fields: Any) -> model.Reply:
    text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
    return model.Reply(text=f"{text}\n\n[[ ## completed ## ]]")
