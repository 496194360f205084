"""The results of ``tools/call``: content for the model, and structured content if the tool has it.

An upstream server's result is forwarded completely. In the results of code plugins, content blocks (images, audio,
resources) stay blocks, text becomes a text block, and everything else a text block with JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt.core import admitting as rules
from toolbelt.core import schema
from toolbelt.mcp import protocol
from toolbelt.runtime import calls

SERVER = {"name": "toolbelt", "title": "Toolbelt", "version": toolbelt.__version__}
# The metadata of each result in modern revisions.
SERVER_META: Mapping[str, Any] = {protocol.SERVER: SERVER}
MODERN: Mapping[str, Any] = {"resultType": "complete", "_meta": SERVER_META}
# Results must not be cached: a flip applies to the next request.
NO_CACHE: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
MODERN_LIST: Mapping[str, Any] = {**MODERN, **NO_CACHE}

# The key of a refusal's details, in a result's ``_meta``.
REFUSAL = "toolbelt/refusal"
# The key of what the model has to know beside a result: in ``_meta``, and in structured content.
NOTICE, NOTICE_FIELD = "toolbelt/notice", "toolbelt_notice"
# Answered with the same message, so that it does not reveal whether a tool is missing, hidden or denied.
_UNKNOWN = frozenset({"unknown-tool", "tool-not-active", "tool-denied"})
MAX_NAME_LENGTH = 100

# The required fields of each kind of block.
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


def of(answer: calls.Answer, tool: str) -> dict[str, Any]:
    """Return the MCP result of a call of ``tool``, with what its model has to know beside it.

    A tool that the agent does not have is a result, too: frameworks end the run at an error of the protocol.
    """
    result = with_notice(_of(answer, tool), answer.notice)
    if not answer.notice:
        return result
    result["_meta"] = {**result.get("_meta", {}), NOTICE: answer.notice}
    structured = result.get("structuredContent")
    if isinstance(answer, calls.Result) and isinstance(structured, dict):
        # Some clients pass on nothing else.
        noticed = {NOTICE_FIELD: answer.notice, **structured}
        if _takes(answer.output_schema, noticed):
            result["structuredContent"] = noticed
    return result


def _takes(output_schema: str, structured: Mapping[str, Any]) -> bool:
    """Return whether a tool's output schema has no objection to a field more, which is none of its data."""
    if not output_schema:
        return True
    rest = schema.mapping(output_schema, {}).get("additionalProperties", True)
    return rest is True and not schema.violations(output_schema, structured)


def _of(answer: calls.Answer, tool: str) -> dict[str, Any]:
    if isinstance(answer, rules.Refusal):
        if answer.code in _UNKNOWN:
            answer = unknown(tool)
        error: dict[str, Any] = {"content": [_text(answer.message)], **(answer.mcp or {}), "isError": True}
        refusal = {k: v for k, v in answer.document().items() if k != "is_error"}
        return {**error, "_meta": {**error.get("_meta", {}), REFUSAL: refusal}}
    if answer.mcp is not None:
        return {"content": [], "isError": False, **answer.mcp}
    content = answer.content
    if _is_in_blocks(content):
        result: dict[str, Any] = {"content": list(content["content"]), "isError": False}
        if "structuredContent" in content:
            result["structuredContent"] = content["structuredContent"]
        return result
    result = {"content": [_text(_as_text(content))], "isError": False}
    if answer.output_schema:
        result["structuredContent"] = dict(content)
    return result


def modern(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the fields that modern revisions require."""
    return {**result, **MODERN, "_meta": {**result.get("_meta", {}), **SERVER_META}}


def unknown(tool: str) -> rules.Refusal:
    """Return the refusal of a tool that the agent does not have, or may not call."""
    return rules.Refusal(
        code="unknown-tool", message=f"There is no tool named {tool[:MAX_NAME_LENGTH]!r} that you may call."
    )


def with_notice(result: Mapping[str, Any], notice: str) -> dict[str, Any]:
    """Return the result with a notice appended to its content."""
    return {**result, "content": [*result["content"], _text(notice)]} if notice else dict(result)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _as_text(content: Mapping[str, Any]) -> str:
    if content.keys() == {"result"}:
        only = content["result"]
        return only if isinstance(only, str) else schema.canonical(only)
    return schema.canonical(content)


def _is_in_blocks(content: Mapping[str, Any]) -> bool:
    blocks = content.get("content")
    return (
        isinstance(blocks, list)
        and content.keys() <= {"content", "structuredContent"}
        and isinstance(content.get("structuredContent", {}), dict)
        and bool(blocks)
        and all(_is_block(block) for block in blocks)
    )


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or (needed := _BLOCKS.get(block.get("type", ""))) is None:
        return False
    if block["type"] == "resource":
        resource = block.get("resource")
        return isinstance(resource, dict) and "uri" in resource and ("text" in resource or "blob" in resource)
    return all(isinstance(block.get(name), str) for name in needed)
