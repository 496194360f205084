"""What is known of a plugin, to operators and to what stores it?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.core import errors
from toolbelt.plugins import contract, lifecycle, offers


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """What a plugin offers, its state and why, and where it comes from.

    ``problems`` tell of the tools that it was registered without.
    """

    name: str
    namespace: str = ""
    title: str = ""
    description: str = ""
    category: str = ""
    source: str = ""
    state: lifecycle.PluginState = "registered"
    error: str = ""
    tools: tuple[contract.ToolDefinition, ...] = ()
    toolkits: tuple[contract.CodeToolkit, ...] = ()
    problems: tuple[errors.Problem, ...] = ()

    @property
    def tool_count(self) -> int:
        """Count its tools."""
        return len(self.tools)


def of(offer: offers.Offer, life: lifecycle.Life, problems: tuple[errors.Problem, ...]) -> PluginInfo:
    """Put together what the plugin says of itself and what became of it."""
    return PluginInfo(
        name=offer.name,
        namespace=offer.namespace,
        title=offer.title,
        description=offer.description,
        category=offer.category,
        source=offer.source,
        state=life.state,
        error=life.error,
        tools=offer.tools,
        toolkits=offer.toolkits,
        problems=problems,
    )
