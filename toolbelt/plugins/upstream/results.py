"""The answers of upstream servers' tools: whole, for clients that speak MCP, and as JSON for all others.

As JSON an answer in text is that text, and a structured one is its structure (the text beside it says the same again).
What is neither, images, sound, resources, stands as MCP has it under ``content``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins.upstream import cleaning

LONGEST_ERROR = 4_000
# What a block says beside what it is; the rest is for clients.
_KEPT = ("type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "resource")
_KEPT_OF_RESOURCE = ("uri", "mimeType", "text", "blob")


# What a result says to the client of a tool. All else is between the server and whoever is connected to it.
_HANDED_ON = ("content", "structuredContent", "isError", "_meta")
# Keys of ``_meta`` that are the protocol's or Toolbelt's own, and say nothing of the tool's answer.
_OWN_META = ("io.modelcontextprotocol/", "toolbelt/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered, as MCP has it: the server's own blocks in their order, and what belongs to them."""

    result: Mapping[str, Any]


class ToolFailed(contract.ToolError):
    """The tool says that it failed. ``result`` is its whole answer, as MCP has it."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        self.result = result
        super().__init__(message)


def read(result: Mapping[str, Any]) -> ToolResult:
    """Return what is handed on of an answer. Raises :class:`ToolFailed` where the tool says that it failed."""
    whole = {name: result[name] for name in _HANDED_ON if name in result}
    meta = whole.pop("_meta", None)
    if isinstance(meta, Mapping):
        meta = {key: value for key, value in meta.items() if not key.startswith(_OWN_META)}
    if meta:
        whole["_meta"] = meta
    if whole.get("isError"):
        said = cleaning.text("\n".join(_texts(_blocks(whole))), LONGEST_ERROR)
        raise ToolFailed(said or "The tool failed, and did not say why.", whole)
    return ToolResult(result=whole)


def content(result: Mapping[str, Any]) -> Any:
    """Return the answer as JSON."""
    blocks = _blocks(result)
    texts = _texts(blocks)
    structured = result.get("structuredContent")
    if len(texts) < len(blocks):
        mixed: dict[str, Any] = {"content": [_block(block) for block in blocks]}
        return mixed if structured is None else {**mixed, "structuredContent": structured}
    if structured is not None:
        return structured
    return texts if len(texts) > 1 else "".join(texts)


def _blocks(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [block for block in _list(result.get("content")) if isinstance(block, Mapping)]


def _texts(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: block[name] for name in _KEPT if name in block}
    resource = found.get("resource")
    if isinstance(resource, Mapping):
        found["resource"] = {name: resource[name] for name in _KEPT_OF_RESOURCE if name in resource}
    return found


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
