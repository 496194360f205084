"""Information about a registered plugin, for operators and for storing it."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.core import errors
from toolbelt.plugins import contract, lifecycle, offers


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """A plugin's tools and toolkits, its state and error, and its source.

    ``problems`` explain which tools were left out when it was registered, and which it offers only since it was
    initialized.
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
        """Return the number of tools."""
        return len(self.tools)


def of(offer: offers.Offer, status: lifecycle.Status, problems: tuple[errors.Problem, ...]) -> PluginInfo:
    """Return the information about a plugin, from its offer and its lifecycle."""
    return PluginInfo(
        name=offer.name,
        namespace=offer.namespace,
        title=offer.title,
        description=offer.description,
        category=offer.category,
        source=offer.source,
        state=status.state,
        error=status.error,
        tools=offer.tools,
        toolkits=offer.toolkits,
        problems=problems,
    )
