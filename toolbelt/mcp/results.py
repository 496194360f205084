"""What does an MCP client get for a call? ``tools/call``: content that a model reads, and structure if the tool has it.

What an upstream server answered is handed on whole. Of what plugins in code answer, blocks (images, sound, resources)
are blocks; a text is a text, and all else is JSON in a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import calls as rules
from toolbelt.core import schema
from toolbelt.mcp import protocol
from toolbelt.runtime import calls

# Under which key a result says more of itself than a model needs.
REFUSAL = "toolbelt/refusal"
# What is answered in the same words, whatever of it is so: there is no such tool, it is hidden, or it is denied.
_UNKNOWN = frozenset({"unknown-tool", "tool-not-active", "tool-denied"})
LONGEST_NAME = 100

# What each kind of block cannot be without.
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


def of(answer: calls.Answer, asked: str) -> dict[str, Any]:
    """Give the result of a call of ``asked``. Raises protocol.Fault where it is of no tool of this agent's."""
    if isinstance(answer, rules.Refusal):
        if answer.code in _UNKNOWN:
            raise unknown(asked)
        said: dict[str, Any] = {"content": [_text(answer.message)], **(answer.mcp or {}), "isError": True}
        refusal = {k: v for k, v in answer.document().items() if k != "is_error"}
        return {**said, "_meta": {**said.get("_meta", {}), REFUSAL: refusal}}
    if answer.mcp is not None:
        return {"content": [], "isError": False, **answer.mcp}
    content = answer.content
    if _is_in_blocks(content):
        found: dict[str, Any] = {"content": list(content["content"]), "isError": False}
        if "structuredContent" in content:
            found["structuredContent"] = content["structuredContent"]
        return found
    found = {"content": [_text(_in_words(content))], "isError": False}
    if answer.is_structured:
        found["structuredContent"] = dict(content)
    return found


def unknown(tool: str) -> protocol.Fault:
    """Refuse a call of what there is not for this agent."""
    return protocol.Fault(
        protocol.INVALID_PARAMS, f"There is no tool named {tool[:LONGEST_NAME]!r} that you may call."
    )


def with_news(result: Mapping[str, Any], news: str) -> dict[str, Any]:
    """Tell of something beside the result, behind its own content."""
    return {**result, "content": [*result["content"], _text(news)]} if news else dict(result)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _in_words(content: Mapping[str, Any]) -> str:
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
