"""The prompts, resources and completions that the official conformance suite asks for by name."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

# A red dot.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
# The prompt that is hidden and shown again, to check that clients are notified.
EXTRA_PROMPT = "test_extra_prompt"
TEMPLATE = "test://template/{id}/data"
TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content",
    "test://example-resource": "This is an example resource.",
}


def _prompt(name: str, *arguments: str) -> types.Prompt:
    declared = [
        types.PromptArgument(name=key, description=f"Test {key}.", required=True) for key in arguments
    ]
    return types.Prompt(name=name, description=f"The suite's {name}.", arguments=declared)


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    """Return the prompts."""
    return types.ListPromptsResult(
        prompts=[
            _prompt("test_simple_prompt"),
            _prompt("test_prompt_with_arguments", "arg1", "arg2"),
            _prompt("test_prompt_with_embedded_resource", "resourceUri"),
            _prompt("test_prompt_with_image"),
            _prompt("test_input_required_result_prompt"),
            _prompt(EXTRA_PROMPT),
        ]
    )


async def get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return a prompt with its arguments filled in."""
    arguments = params.arguments or {}
    text = "This is a simple prompt for testing."
    blocks: list[Any] = []
    match params.name:
        case "test_prompt_with_arguments":
            text = f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        case "test_prompt_with_embedded_resource":
            content = types.TextResourceContents(
                uri=arguments.get("resourceUri", ""),
                mime_type="text/plain",
                text="Embedded resource content for testing.",
            )
            blocks, text = (
                [types.EmbeddedResource(type="resource", resource=content)],
                "Please process the embedded resource above.",
            )
        case "test_prompt_with_image":
            blocks = [types.ImageContent(type="image", data=PNG, mime_type="image/png")]
            text = "Please analyze the image above."
    blocks.append(types.TextContent(type="text", text=text))
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=block) for block in blocks]
    )


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    """Return the resources."""
    resources = [
        types.Resource(uri=uri, name=uri.removeprefix("test://"), mime_type="text/plain") for uri in TEXTS
    ]
    resources.append(types.Resource(uri="test://static-binary", name="static-binary", mime_type="image/png"))
    return types.ListResourcesResult(resources=resources)


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    """Return the template."""
    template = types.ResourceTemplate(uri_template=TEMPLATE, name="template", mime_type="application/json")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Return the content of a resource."""
    uri = str(params.uri)
    content: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-binary":
        content = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri in TEXTS:
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri])
    else:
        number = uri.removeprefix("test://template/").removesuffix("/data")
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    return types.ReadResourceResult(contents=[content])


async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return the values that start with the argument."""
    values = [value for value in ("paris", "park", "party") if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))
