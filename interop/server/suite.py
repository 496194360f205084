"""What does the official conformance suite want to call? Its tools, from an MCP server that stands behind Toolbelt.

The suite calls them by name, and wants certain answers: text, an image, sound, resources, errors, progress, and that
the list changes. Run by Toolbelt over stdio, so each of these answers goes through Toolbelt as any upstream server's
does. The list it changes as an operator would: it overrides a tool by the HTTP API.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx2
import mcp_types as types
from mcp.server import Server, stdio
from mcp.server.context import ServerRequestContext

# A red dot, and no sound at all.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
# As the suite has it, to see each of these words come back.
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_text = types.TextContent(type="text", text="This is a simple text response for testing.")
_image = types.ImageContent(type="image", data=PNG, mime_type="image/png")
_resource = types.EmbeddedResource(
    type="resource",
    resource=types.TextResourceContents(
        uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
    ),
)
ANSWERS: Mapping[str, list[types.ContentBlock]] = {
    "test_simple_text": [_text],
    "test_image_content": [_image],
    "test_audio_content": [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [_resource],
    "test_multiple_content_types": [_text, _image, _resource],
    "test_tool_with_progress": [_text],
    # These two are called to see that nothing else comes beside the answer.
    "test_logging_tool": [_text],
    "test_streaming_elicitation": [_text],
    "test_trigger_tool_change": [_text],
    "test_one_more": [_text],
    "json_schema_2020_12_tool": [_text],
}
SCHEMAS = {"json_schema_2020_12_tool": SCHEMA}

_hidden = False


async def listed(_: ServerRequestContext[Any], __: Any) -> types.ListToolsResult:
    names = [*ANSWERS, "test_error_handling"]
    tools = [
        types.Tool(
            name=name, description=f"Does as {name} says.", input_schema=dict(SCHEMAS.get(name, NOTHING))
        )
        for name in names
    ]
    return types.ListToolsResult(tools=tools)


async def called(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    if params.name == "test_error_handling":
        said = types.TextContent(type="text", text="This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[said], is_error=True)
    if params.name == "test_tool_with_progress":
        for percent in (0, 50, 100):
            await context.session.report_progress(percent, 100)
            await asyncio.sleep(0.05)
    if params.name == "test_trigger_tool_change":
        await flip("test_one_more")
    return types.CallToolResult(content=ANSWERS.get(params.name, [_text]))


async def flip(tool: str) -> None:
    """Hide a tool from the suite's agent, and the next time show it again."""
    global _hidden
    _hidden = not _hidden
    address = f"{os.environ['SUITE_ADDRESS']}/api/v1/agents/conformance/overrides/{tool}"
    headers = {"Authorization": f"Bearer {os.environ['SUITE_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        (await http.put(address, json={"on": not _hidden, "confirm": True})).raise_for_status()


async def main() -> None:
    server = Server("suite", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio.stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
