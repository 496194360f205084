"""What is the model told while it can ask for its capabilities, and which questions are about them?"""

from __future__ import annotations

import re

import toolbelt

CAPABILITY_LIST = "toolDiscovery__capability_list"

_ASKED = re.compile(
    r"\b(?:what (?:can|could) you do|what are you able to do|(?:what|which) (?:tools|capabilities|plugins)"
    r"|(?:list|show)(?: me)? (?:all )?(?:of )?your (?:tools|capabilities|plugins))\b",
    re.IGNORECASE,
)


class Discovery(toolbelt.CodeToolkit):
    key = "discovery"
    title = "Discovery"
    description = "Lets an agent list what it has active now, by plugin."
    members = (CAPABILITY_LIST,)

    def policy(self, context: toolbelt.PolicyContext) -> str:
        return (
            f"Your tools change while you work. Call {', '.join(context.active_tools)} when you are asked "
            "what you can do, or before you say that you cannot do something; never answer that from memory."
        )

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus | None:
        asked = _ASKED.search(context.message)
        if asked is None:
            return None
        return toolbelt.Focus(active_tools=context.active_tools, because=asked.group().lower())
