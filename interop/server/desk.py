"""The plugin whose tools the parts call: quick tools, a slow one, and one that fails."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolbelt import FunctionPlugin, RuntimeAPI, ToolError, tool


class Line(BaseModel):
    item: str = Field(min_length=1, max_length=40)
    count: int = Field(default=1, ge=1, le=99)


class Order(BaseModel):
    lines: list[Line] = Field(min_length=1)
    pace: Literal["calm", "rush"] = "calm"
    note: str | None = None


class Sum(BaseModel):
    sum: int


@tool(title="Add", annotations={"readOnlyHint": True})
def add(a: int, b: int) -> Sum:
    """Add two whole numbers."""
    return Sum(sum=a + b)


@tool(title="Take an order", annotations={"readOnlyHint": False, "destructiveHint": False})
def order(order: Order) -> str:
    """Take an order of things for the desk.

    Args:
        order: What is wanted, how many of each, and how soon.
    """
    return f"{sum(line.count for line in order.lines)} things are on their way, {order.pace}."


@tool(title="Fail", annotations={"readOnlyHint": True})
def fail(because: str) -> str:
    """Fail, for the given reason."""
    raise ToolError(f"The desk is closed: {because}.")


@tool(title="Wait", annotations={"readOnlyHint": True})
async def wait(seconds: Annotated[float, Field(ge=0, le=50)]) -> str:
    """Wait before answering."""
    await asyncio.sleep(seconds)
    return f"Waited {seconds:g} s."


@tool(title="Add a note", annotations={"readOnlyHint": False, "destructiveHint": False})
async def add_note(text: str, runtime: RuntimeAPI) -> str:
    """Put a note onto the desk."""
    notes = await runtime.state.list("note/")
    await runtime.state.set(f"note/{len(notes):06}", text)
    return f"Noted: {text}"


@tool(title="Read the notes", annotations={"readOnlyHint": True})
async def read_notes(runtime: RuntimeAPI) -> list[str]:
    """Read all notes on the desk."""
    return [str(text) for text in (await runtime.state.list("note/")).values()]


plugin = FunctionPlugin(
    name="desk",
    namespace="desk",
    title="Desk",
    description="A desk to try things at.",
    functions=[add, order, fail, wait, add_note, read_notes],
)
