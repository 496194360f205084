"""The toolkit's policy (when to list the tools) and directive."""

from __future__ import annotations

import re

import toolbelt

CAPABILITY_LIST = "toolDiscovery__capability_list"

_PHRASE = re.compile(
    r"\b(?:what (?:can|could) you do|what are you able to do|(?:what|which) (?:tools|capabilities|plugins)"
    r"|(?:list|show)(?: me)? (?:all )?(?:of )?your (?:tools|capabilities|plugins))\b",
    re.IGNORECASE,
)


class Discovery(toolbelt.CodeToolkit):
    key = "discovery"
    title = "Discovery"
    description = "Lets an agent list its active tools, by plugin."
    members = (CAPABILITY_LIST,)

    def policy(self, context: toolbelt.PolicyContext) -> str:
        return (
            f"Your tools change while you work. Call {', '.join(context.active_tools)} if you are asked "
            "what you can do, and before you say that you cannot do something. Never answer that from memory."
        )

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus | None:
        match = _PHRASE.search(context.message)
        if match is None:
            return None
        return toolbelt.Focus(active_tools=context.active_tools, because=match.group().lower())
