"""The toolDiscovery plugin: lists an agent's active tools, as they are at the time of the call."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from toolbelt import FunctionPlugin, RuntimeAPI, ToolError, tool
from toolbelt.plugins.builtin.tool_discovery import toolkit


@tool(
    title="List capabilities",
    annotations={
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
)
def capability_list(runtime: RuntimeAPI, plugin: Annotated[str, Field(max_length=64)] = "") -> dict[str, Any]:
    """List your active tools, by plugin.

    Args:
        plugin: Only list this plugin's tools. Case is ignored.
    """
    call = runtime.call
    if call is None:
        raise ToolError("Only an agent can list its tools, and this call is not by an agent.")
    active = {name: list(tools) for name, tools in call.active_tools.items() if tools}
    plugins = [
        {"plugin": name, "tools": tools}
        for name, tools in active.items()
        if plugin.casefold() in ("", name.casefold())
    ]
    if plugin and not plugins:
        active_names = ", ".join(filter(None, active)) or "none"
        raise ToolError(f"You have no active tools of {plugin!r}. Plugins with active tools: {active_names}.")
    return {
        "agent": call.agent,
        "tool_count": sum(len(entry["tools"]) for entry in plugins),
        "plugins": plugins,
    }


class ToolDiscovery(FunctionPlugin):
    def __init__(self) -> None:
        super().__init__(
            name="toolDiscovery",
            namespace="toolDiscovery",
            title="Tool discovery",
            description="Lists an agent's active tools, by plugin.",
            category="orchestration",
            functions=[capability_list],
            toolkits=[toolkit.Discovery()],
        )
