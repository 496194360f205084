"""What is the model told while it can think aloud, and when should it?"""

from __future__ import annotations

import re

import toolbelt

THINK = "think__think"

_ASKED = re.compile(
    r"\b(?:think (?:hard|carefully|it through|step by step)|reason step by step)\b", re.IGNORECASE
)


class Thinking(toolbelt.CodeToolkit):
    key = "thinking"
    title = "Thinking"
    description = "Lets an agent write a thought down before it acts."
    members = (THINK,)

    def policy(self, context: toolbelt.PolicyContext) -> str:
        return (
            f"Call {', '.join(context.active_tools)} before a step that is hard to undo, and when answers of "
            "tools contradict each other: one thought, what follows from it, and what is still unknown. "
            "It changes nothing and finds nothing out, so one call a step is enough."
        )

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus | None:
        asked = _ASKED.search(context.message)
        if asked is None:
            return None
        return toolbelt.Focus(
            active_tools=context.active_tools, tool_choice="required", because=asked.group().lower()
        )
