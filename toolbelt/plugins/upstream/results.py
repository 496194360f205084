"""What does a tool's answer become that comes as MCP says it?

A model reads JSON: so an answer in text is that text, and a structured one is its structure (the text beside it says
the same again). What is neither, images, sound, resources, stands as MCP has it under ``content``, so that whoever
speaks MCP can hand it on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins.upstream import cleaning

LONGEST_ERROR = 4_000
# What a block says beside what it is; the rest is for clients.
_KEPT = ("type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "resource")
_KEPT_OF_RESOURCE = ("uri", "mimeType", "text", "blob")


def content(result: Mapping[str, Any]) -> Any:
    """Give the answer as JSON. Raises :class:`contract.ToolError` where the tool says that it failed."""
    blocks = [block for block in _list(result.get("content")) if isinstance(block, Mapping)]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    if result.get("isError"):
        said = cleaning.text("\n".join(texts), LONGEST_ERROR)
        raise contract.ToolError(said or "The tool failed, and did not say why.")
    structured = result.get("structuredContent")
    if len(texts) < len(blocks):
        mixed: dict[str, Any] = {"content": [_block(block) for block in blocks]}
        return mixed if structured is None else {**mixed, "structuredContent": structured}
    if structured is not None:
        return structured
    return texts if len(texts) > 1 else "".join(texts)


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: block[name] for name in _KEPT if name in block}
    resource = found.get("resource")
    if isinstance(resource, Mapping):
        found["resource"] = {name: resource[name] for name in _KEPT_OF_RESOURCE if name in resource}
    return found


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
