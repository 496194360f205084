"""A plugin whose tool blocks until it is released, and marks each start and each cancellation in a directory."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from pathlib import Path
from typing import Any

import toolbelt

# The variable with the directory of the marks; the test sets it for the server's processes.
DIRECTORY = "HOLDING_DIRECTORY"


class Holding(toolbelt.ToolPlugin):
    """A plugin with one tool, which runs until a file named ``go`` exists."""

    name = namespace = "holding"
    version = "1"
    tools = (toolbelt.ToolDefinition(name="holding__hold", description="Hold."),)

    async def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        self.directory = Path(os.environ[DIRECTORY])

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        mark = self.directory / f"started-{uuid.uuid4()}"
        mark.write_text(repr(time.time()))
        try:
            while not (self.directory / "go").exists():  # noqa: ASYNC110 (another process creates it)
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            (self.directory / mark.name.replace("started", "cancelled")).touch()
            raise
        return {}

    async def shutdown(self) -> None:
        return


class Marks:
    """The marks that the tool has left in a directory so far."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def started(self) -> list[float]:
        """Return when each call started, in seconds since the epoch."""
        return sorted(float(mark.read_text() or "0") for mark in self._directory.glob("started-*"))

    def cancelled(self) -> int:
        """Return how many calls were cancelled."""
        return len(list(self._directory.glob("cancelled-*")))

    def release(self) -> None:
        """Let all calls finish."""
        (self._directory / "go").touch()
