"""The results of upstream servers' tools: complete for MCP clients, and as JSON for all others.

As JSON, a result in text is that text, and structured content is that content, because the text repeats it. Other
blocks (images, audio, resources) are under ``content``, as in MCP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core import details
from toolbelt.core.imported import cleaning
from toolbelt.plugins import contract

MAX_ERROR_LENGTH = 4_000
# The type of a result that contains questions, with whose answers the call is repeated.
INPUT_REQUIRED = "input_required"
# What may be left out, and is written as null by some servers.
_OPTIONAL = frozenset(
    {
        "_meta",
        "annotations",
        "audience",
        "blob",
        "content",
        "description",
        "icons",
        "isError",
        "lastModified",
        "mimeType",
        "priority",
        "resultType",
        "size",
        "structuredContent",
        "text",
        "title",
    }
)
# The fields of a block that are kept as JSON; the others are for MCP clients.
_BLOCK_FIELDS = (
    "type",
    "text",
    "data",
    "mimeType",
    "uri",
    "name",
    "title",
    "description",
    "size",
    "resource",
)
_RESOURCE_FIELDS = ("uri", "mimeType", "text", "blob")


CALL = "tools/call"
# What a model reads after a call that began a new session.
NEW_SESSION = "The server has begun a new session: what it kept for earlier calls is gone."
# The fields of a result that are passed on to the client, by method. The others concern only the connection.
_FORWARDED_FIELDS: Mapping[str, tuple[str, ...]] = {
    CALL: ("content", "structuredContent", "isError", "_meta"),
    "prompts/get": ("description", "messages", "_meta"),
    "resources/read": ("contents", "_meta"),
    "completion/complete": ("completion", "_meta"),
    "resources/subscribe": (),
    "toolbelt/can-follow": ("follows",),
}
METHODS = frozenset(_FORWARDED_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The MCP result of a tool: the server's own blocks in their order, and the other fields."""

    result: Mapping[str, Any]


class ToolFailedError(contract.ToolError):
    """The tool failed. ``result`` is its complete MCP result."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        self.result = result
        super().__init__(message)


def without_nulls(result: Mapping[str, Any], method: str = CALL) -> dict[str, Any]:
    """Return a server's result without the nulls that it writes for what it leaves out. A tool's needs no content."""
    whole = _without(result)
    if isinstance(whole.get("content"), list):
        whole["content"] = [_block_without_nulls(block) for block in whole["content"] if block is not None]
    elif method == CALL and "content" not in whole:
        whole["content"] = []
    return whole


def _block_without_nulls(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    return {
        name: _without(value) if name in ("annotations", "resource") and isinstance(value, Mapping) else value
        for name, value in _without(block).items()
    }


def _without(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each is not None or name not in _OPTIONAL}


def in_new_session(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result with a note that its session is new."""
    return {**result, "content": [*_list(result.get("content")), {"type": "text", "text": NEW_SESSION}]}


def read(result: Mapping[str, Any], method: str = CALL) -> ToolResult:
    """Return the part of a result that is passed on. Raise ToolFailedError if the tool failed."""
    if result.get("resultType") == INPUT_REQUIRED:
        return ToolResult(result=result)
    whole = {name: result[name] for name in _FORWARDED_FIELDS[method] if result.get(name) is not None}
    if meta := details.own_meta(whole.pop("_meta", None)):
        whole["_meta"] = meta
    if whole.get("isError"):
        message = cleaning.text("\n".join(_texts(_blocks(whole))), MAX_ERROR_LENGTH)
        raise ToolFailedError(message or "The tool failed without a message.", whole)
    return ToolResult(result=whole)


def content(result: Mapping[str, Any]) -> Any:
    """Return the result as JSON."""
    blocks = _blocks(result)
    texts = _texts(blocks)
    structured = result.get("structuredContent")
    if len(texts) < len(blocks):
        mixed: dict[str, Any] = {"content": [_block(block) for block in blocks]}
        return mixed if structured is None else {**mixed, "structuredContent": structured}
    if structured is not None:
        return {"result": structured, "note": NEW_SESSION} if texts[-1:] == [NEW_SESSION] else structured
    return texts if len(texts) > 1 else "".join(texts)


def _blocks(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [block for block in _list(result.get("content")) if isinstance(block, Mapping)]


def _texts(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    accepted = {name: block[name] for name in _BLOCK_FIELDS if name in block}
    resource = accepted.get("resource")
    if isinstance(resource, Mapping):
        accepted["resource"] = {name: resource[name] for name in _RESOURCE_FIELDS if name in resource}
    return accepted


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
