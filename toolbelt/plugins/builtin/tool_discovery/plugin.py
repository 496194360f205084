"""What does this agent have active, by plugin? The answer is of the call itself, so it is never out of date."""

from __future__ import annotations

from typing import Any

import toolbelt
from toolbelt.plugins.builtin.tool_discovery import toolkit


class ToolDiscovery(toolbelt.ToolPlugin):
    name = "toolDiscovery"
    namespace = "toolDiscovery"
    title = "Tool discovery"
    description = "Tells an agent what it has active, by plugin."
    category = "orchestration"
    tools = (
        toolbelt.ToolDefinition(
            name=toolkit.CAPABILITY_LIST,
            title="List capabilities",
            description="List the tools that you have active now, by plugin.",
            input_schema={
                "type": "object",
                "properties": {
                    "plugin": {
                        "type": "string",
                        "description": "Only this plugin's tools; its case does not count.",
                        "maxLength": 64,
                    }
                },
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
    toolkits = (toolkit.Discovery(),)

    def __init__(self) -> None:
        self._runtime: toolbelt.RuntimeAPI | None = None

    def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        self._runtime = runtime

    def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        if tool_name != toolkit.CAPABILITY_LIST:
            raise ValueError(f"toolDiscovery has no tool {tool_name!r}.")
        call = self._runtime.call if self._runtime else None
        if call is None:
            raise toolbelt.ToolError("Capabilities are an agent's, and no agent is calling.")
        wanted = args.get("plugin", "").casefold()
        plugins = [
            {"plugin": plugin, "tools": list(tools)}
            for plugin, tools in call.active_tools.items()
            if tools and wanted in ("", plugin.casefold())
        ]
        if wanted and not plugins:
            known = ", ".join(plugin for plugin, tools in call.active_tools.items() if plugin and tools)
            raise toolbelt.ToolError(
                f"You have nothing active of {args['plugin']!r}. Active are: {known or 'none'}."
            )
        return {
            "agent": call.agent,
            "tool_count": sum(len(one["tools"]) for one in plugins),
            "plugins": plugins,
        }
