"""The requests to upstream servers for tools, prompts, resources and completions, in the official client's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins.upstream import results

# Stands for following a resource, in any revision of the protocol.
FOLLOW = "resources/subscribe"
# Stands for the question whether the server sends updates of a resource, answered as ``follows``.
CAN_FOLLOW = "toolbelt/can-follow"


class RequestFailedError(contract.ToolError):
    """The server answered with a JSON-RPC error; ``error_code`` is the server's code."""

    def __init__(self, message: str, code: int) -> None:
        self.error_code = code
        super().__init__(message)


def build(method: str, params: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the request of this method, and the type of its result.

    Raise contract.ToolError if the parameters are not valid for this method.
    """
    import mcp_types
    import pydantic

    types: Mapping[str, tuple[Any, Any]] = {
        results.CALL: (mcp_types.CallToolRequest, mcp_types.CallToolResult),
        "prompts/get": (mcp_types.GetPromptRequest, mcp_types.GetPromptResult),
        "resources/read": (mcp_types.ReadResourceRequest, mcp_types.ReadResourceResult),
        "completion/complete": (mcp_types.CompleteRequest, mcp_types.CompleteResult),
    }
    request, result = types[method]
    try:
        return request.model_validate({"method": method, "params": dict(params)}, by_name=False), result
    except pydantic.ValidationError as error:
        raise contract.ToolError("The parameters are not valid for this method.") from error
