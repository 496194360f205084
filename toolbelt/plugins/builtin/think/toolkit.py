"""The toolkit's policy (when to write a thought down) and directive."""

from __future__ import annotations

import re

import toolbelt

THINK = "think__think"

_PHRASE = re.compile(
    r"\b(?:think (?:hard|carefully|it through|step by step)|reason step by step)\b", re.IGNORECASE
)


class Thinking(toolbelt.CodeToolkit):
    key = "thinking"
    title = "Thinking"
    description = "Lets an agent write a thought down before it acts."
    members = (THINK,)

    def policy(self, context: toolbelt.PolicyContext) -> str:
        return (
            f"Call {', '.join(context.active_tools)} before a step that is hard to undo, and when tool results "
            "contradict each other: write one thought, what follows from it, and what is still unknown. "
            "It changes nothing and retrieves nothing, so one call per step is enough."
        )

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus | None:
        match = _PHRASE.search(context.message)
        if match is None:
            return None
        return toolbelt.Focus(
            active_tools=context.active_tools, tool_choice="required", because=match.group().lower()
        )
