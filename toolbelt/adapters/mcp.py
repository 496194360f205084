"""What does an MCP server list, and what goes into a request to sample? ``tools/list``, ``sampling/createMessage``"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.json_schema import words

# The key under which a tool says which toolkits it belongs to.
TOOLKITS = "toolbelt/toolkits"


# Lets clients repeat an argument in a header, for whoever stands between. What an upstream server asks for there is
# between it and Toolbelt: agents' clients would show arguments to proxies, and drop a tool that asks for it badly.
MIRRORED = "x-mcp-header"


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Say that the schema is of an object, which MCP wants to be told, and that no argument goes into a header."""
    return {**words.changed(schema, _unmirrored), "type": "object"}


def _unmirrored(schema: dict[str, Any]) -> dict[str, Any]:
    return {word: value for word, value in schema.items() if word != MIRRORED}


LIMITS = surface.Limits(provider="MCP", names=re.compile(r"[a-zA-Z0-9_.-]{1,128}"), say=_object)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``tools``, ``toolChoice``, and ``instructions`` (the policy); ``first_step`` replaces some of them.

    Raises errors.Invalid for an unknown mode.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    tools = [_tool(tool, schemas[tool["name"]]) for tool in asked.tools]
    said: dict[str, Any] = {"tools": tools, "toolChoice": {"mode": "auto" if asked.may_call else "none"}}
    if asked.policy:
        said["instructions"] = asked.policy
    if asked.first_step:
        said["first_step"] = _first(asked.first_step, tools)
    return said


def _tool(tool: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"name": tool["name"], **surface.described(tool), "inputSchema": schema}
    if tool.get("title"):
        said["title"] = tool["title"]
    if tool.get("output_schema") is not None:
        said["outputSchema"] = _object(tool["output_schema"])
    if tool["annotations"]:
        said["annotations"] = tool["annotations"]
    if tool["toolkits"]:
        said["_meta"] = {TOOLKITS: tool["toolkits"]}
    return said


def _first(step: surface.FirstStep, tools: list[dict[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {"toolChoice": {"mode": "required" if step.required else "auto"}}
    if step.narrows:
        said["tools"] = [tool for tool in tools if tool["name"] in step.names]
    return said
