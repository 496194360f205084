"""An upstream MCP server with what the official conformance suite expects.

The suite requests tools, prompts and resources by name, and expects certain results: text, an image, audio, resources,
errors, progress, log messages, questions to the user, and changes of the list. Toolbelt runs this server over stdio, so
each result passes through Toolbelt like that of any upstream server. To change the list, the server overrides a tool
over the HTTP API, as an operator would.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx2
import mcp_types as types
import suite_offers
from mcp.server import Server, stdio, subscriptions
from mcp.server.context import ServerRequestContext

# Audio without samples.
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

EMPTY_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}
# The suite's own schema, of which it expects each keyword to be preserved.
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
_image = types.ImageContent(type="image", data=suite_offers.PNG, mime_type="image/png")
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
    # The suite calls these to check that their results are not accompanied by other messages.
    "test_logging_tool": [_text],
    "test_streaming_elicitation": [_text],
    "test_trigger_tool_change": [_text],
    "test_trigger_prompt_change": [_text],
    "test_one_more": [_text],
    "json_schema_2020_12_tool": [_text],
}
SCHEMAS = {
    "json_schema_2020_12_tool": SCHEMA,
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}},
}


def _form(required: list[str], **fields: Any) -> Mapping[str, Any]:
    return {"type": "object", "properties": fields, "required": required}


_TEXT = {"type": "string"}
_NAME = _form(["name"], name=_TEXT)
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
# The questions of a tool, turn by turn: key, message, form.
QUESTIONS: Mapping[str, list[tuple[str, str, Mapping[str, Any]]]] = {
    "test_elicitation": [("user", "", _form(["username", "email"], username=_TEXT, email=_TEXT))],
    "test_elicitation_sep1034_defaults": [
        (
            "defaults",
            "Please check.",
            _form(
                [],
                name={"type": "string", "default": "John Doe"},
                age={"type": "integer", "default": 30},
                score={"type": "number", "default": 95.5},
                status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                verified={"type": "boolean", "default": True},
            ),
        )
    ],
    "test_elicitation_sep1330_enums": [
        (
            "choices",
            "Please choose.",
            _form(
                [],
                untitledSingle={"type": "string", "enum": _OPTIONS},
                titledSingle={"type": "string", "oneOf": _TITLED},
                legacyEnum={
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                untitledMulti={"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
                titledMulti={"type": "array", "items": {"anyOf": _TITLED}},
            ),
        )
    ],
    "test_input_required_result_elicitation": [("user_name", "What is your name?", _NAME)],
    "test_input_required_result_request_state": [
        ("confirm", "Please confirm", _form(["ok"], ok={"type": "boolean"}))
    ],
    "test_input_required_result_tampered_state": [
        ("confirm", "Please confirm", _form(["ok"], ok={"type": "boolean"}))
    ],
    "test_input_required_result_multi_round": [
        ("first", "What is your name?", _NAME),
        ("second", "What is your favorite color?", _form(["color"], color=_TEXT)),
    ],
}

_hidden: set[str] = set()


async def list_tools(_: ServerRequestContext[Any], __: Any) -> types.ListToolsResult:
    names = [*ANSWERS, *QUESTIONS, "test_error_handling", "test_tool_with_logging"]
    tools = [
        types.Tool(
            name=name, description=f"Does as {name} says.", input_schema=dict(SCHEMAS.get(name, EMPTY_SCHEMA))
        )
        for name in names
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name in QUESTIONS:
        return ask_user(params)
    if params.name == "test_tool_with_logging":
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.session.send_log_message("info", line)
            await asyncio.sleep(0.05)
    if params.name == "test_error_handling":
        content = types.TextContent(type="text", text="This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[content], is_error=True)
    if params.name == "test_tool_with_progress":
        for percent in (0, 50, 100):
            await context.session.report_progress(percent, 100)
            await asyncio.sleep(0.05)
    if params.name == "test_trigger_tool_change":
        await flip("test_one_more")
    if params.name == "test_trigger_prompt_change":
        await flip(f"prompt_{suite_offers.EXTRA_PROMPT}")
    return types.CallToolResult(content=ANSWERS.get(params.name, [_text]))


def ask_user(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """Ask the question of this turn, or return the result after the last. The state is the number of the turn."""
    turn = int(params.request_state or 0)
    questions = QUESTIONS[params.name]
    responses = params.input_responses or {}
    if params.request_state is not None and questions[turn][0] in responses:
        turn += 1
    if turn == len(questions):
        text = f"Elicitation completed: {responses}. state-ok"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
    key, message, form = questions[turn]
    question = message or str((params.arguments or {}).get("message"))
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=question, requested_schema=dict(form))
    )
    return types.InputRequiredResult(input_requests={key: request}, request_state=str(turn))


async def flip(tool: str) -> None:
    """Hide a tool or prompt from the suite's agent, or show it again if it is hidden."""
    _hidden.symmetric_difference_update({tool})
    address = f"{os.environ['SUITE_ADDRESS']}/api/v1/agents/conformance/overrides/{tool}"
    headers = {"Authorization": f"Bearer {os.environ['SUITE_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        (await http.put(address, json={"on": tool not in _hidden, "confirm": True})).raise_for_status()


async def main() -> None:
    server = Server(
        "suite",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=suite_offers.list_prompts,
        on_get_prompt=suite_offers.get_prompt,
        on_list_resources=suite_offers.list_resources,
        on_list_resource_templates=suite_offers.list_templates,
        on_read_resource=suite_offers.read_resource,
        on_completion=suite_offers.complete,
        # Toolbelt refuses subscriptions to a server that could not send updates.
        on_subscriptions_listen=subscriptions.ListenHandler(subscriptions.InMemorySubscriptionBus()),
    )
    async with stdio.stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
