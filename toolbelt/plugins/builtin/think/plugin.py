"""The think plugin: a tool that returns the thought it is given, because writing it down is the point.

It is the smallest plugin, and a good example to start from.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from toolbelt import FunctionPlugin, tool
from toolbelt.plugins.builtin.think import toolkit


@tool(
    title="Think",
    annotations={
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
)
def think(thought: Annotated[str, Field(min_length=1, max_length=20_000)]) -> dict[str, Any]:
    """Write a thought down: what is known, what follows, what to do next. Retrieves nothing and changes nothing.

    Args:
        thought: The thought, in plain words.
    """
    return {"acknowledged": True, "thought": thought}


class Think(FunctionPlugin):
    def __init__(self) -> None:
        super().__init__(
            name="think",
            namespace="think",
            title="Think",
            description="Lets an agent write its reasoning down. Reads nothing and changes nothing.",
            category="analysis",
            functions=[think],
            toolkits=[toolkit.Thinking()],
        )
