"""How does an agent think aloud? One tool that gives the thought back: writing it down is the point.

The smallest plugin there is, so the one to imitate first.
"""

from __future__ import annotations

from typing import Any

import toolbelt
from toolbelt.plugins.builtin.think import toolkit

LONGEST_THOUGHT = 20_000


class Think(toolbelt.ToolPlugin):
    name = "think"
    namespace = "think"
    title = "Think"
    description = "A place to reason in writing. Reads nothing, changes nothing."
    category = "analysis"
    tools = (
        toolbelt.ToolDefinition(
            name=toolkit.THINK,
            title="Think",
            description=(
                "Write one thought down: what is known, what follows, what to do next. "
                "Finds nothing out and changes nothing."
            ),
            input_schema={
                "type": "object",
                "properties": {
                    "thought": {
                        "type": "string",
                        "description": "The thought, in plain words.",
                        "minLength": 1,
                        "maxLength": LONGEST_THOUGHT,
                    }
                },
                "required": ["thought"],
                "additionalProperties": False,
            },
            annotations={
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        ),
    )
    toolkits = (toolkit.Thinking(),)

    def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        if tool_name != toolkit.THINK:
            raise ValueError(f"think has no tool {tool_name!r}.")
        return {"acknowledged": True, "thought": args["thought"]}
