"""Tools as in MCP's ``tools/list``, and parameters for ``sampling/createMessage``.

The provider behind a sampling request is unknown, and leaving out tools costs some of them their cache and preserved
reasoning. So every step has all definitions, and a focus is text after the policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.json_schema import keywords

# The key in a tool's ``_meta`` that lists its toolkits.
TOOLKITS = "toolbelt/toolkits"
# Lets clients copy an argument into a header, for proxies. An upstream server's headers concern only that server and
# Toolbelt: otherwise agents' clients would reveal arguments to proxies, and drop a tool whose header is invalid.
HEADER_KEYWORD = "x-mcp-header"


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with ``type: object``, which MCP requires, and without headers for arguments."""
    return {**keywords.transform(schema, _without_header), "type": "object"}


def _without_header(schema: dict[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword != HEADER_KEYWORD}


LIMITS = surface.Limits(provider="MCP", names=re.compile(r"[a-zA-Z0-9_.-]{1,128}"), convert=_object)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Return ``tools``, ``toolChoice`` and ``instructions`` (the policy); ``first_step`` replaces some of them.

    Raise errors.Invalid for an unknown mode.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS)
    tools = [_tool(tool, schemas[tool["name"]]) for tool in content.tools]
    rendered: dict[str, Any] = {
        "tools": tools,
        "toolChoice": {"mode": "auto" if content.may_call else "none"},
    }
    if content.policy:
        rendered["instructions"] = content.policy
    if content.first_step:
        rendered["first_step"] = _first_step(content.first_step, content.policy)
    return rendered


def _tool(tool: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": tool["name"], **surface.description(tool), "inputSchema": schema}
    if tool.get("title"):
        rendered["title"] = tool["title"]
    if tool.get("output_schema") is not None:
        rendered["outputSchema"] = _object(tool["output_schema"])
    if tool["annotations"]:
        rendered["annotations"] = tool["annotations"]
    if tool.get("icons"):
        rendered["icons"] = tool["icons"]
    meta = dict(tool.get("meta") or {})
    if tool["toolkits"]:
        meta[TOOLKITS] = tool["toolkits"]
    if meta:
        rendered["_meta"] = meta
    return rendered


def _first_step(step: surface.FirstStep, policy: str) -> dict[str, Any]:
    rendered: dict[str, Any] = {"toolChoice": {"mode": "required" if step.required else "auto"}}
    if step.narrows:
        rendered["instructions"] = step.policy(policy)
    return rendered
