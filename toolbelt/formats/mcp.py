"""Tools as in MCP's ``tools/list``, and parameters for ``sampling/createMessage``.

The provider behind a sampling request is unknown, and other tools or another system prompt cost some of them their
cache and preserved thinking. So every step has the same, and a focus is a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import profiles, surface
from toolbelt.formats.json_schema import keywords

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


LIMITS = surface.Limits(
    provider="MCP", names=re.compile(r"[a-zA-Z0-9_.-]{1,128}"), convert=_object, takes_patterns=True
)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.UNKNOWN
) -> dict[str, Any]:
    """Return ``tools``, ``toolChoice`` and ``instructions`` (the policy), and what ``first_step`` changes.

    Raise errors.Invalid for an unknown mode.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    tools = [_tool(tool, schemas[tool["name"]]) for tool in content.tools]
    rendered: dict[str, Any] = {
        "tools": tools,
        "toolChoice": {"mode": "auto" if content.may_call else "none"},
    }
    if content.policy:
        rendered["instructions"] = content.policy
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
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


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    rendered: dict[str, Any] = {}
    if is_forced := step.required and profile.can_be_forced():
        rendered["toolChoice"] = {"mode": "required"}
    # MCP cannot name the tool that must be called.
    if text := step.text(is_forced=is_forced and not step.narrows):
        rendered["messages"] = [{"role": "user", "content": {"type": "text", "text": text}}]
    return rendered
