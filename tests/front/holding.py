"""A plugin whose tool holds until it is let go, and leaves a mark in a directory when it begins and when it ends."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from pathlib import Path
from typing import Any

import toolbelt

# Where the marks are; set for the server's processes by the test.
DIRECTORY = "HOLDING_DIRECTORY"


class Holding(toolbelt.ToolPlugin):
    """Has one tool, which runs until there is a file named ``go``."""

    name = namespace = "holding"
    version = "1"
    tools = (toolbelt.ToolDefinition(name="holding__hold", description="Hold."),)

    async def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        self.directory = Path(os.environ[DIRECTORY])

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        begun = self.directory / f"begun-{uuid.uuid4()}"
        begun.write_text(repr(time.time()))
        try:
            while not (self.directory / "go").exists():  # noqa: ASYNC110 (another process makes it)
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            (self.directory / begun.name.replace("begun", "cancelled")).touch()
            raise
        return {}

    async def shutdown(self) -> None:
        return


class Marks:
    """What the tool has left in a directory so far."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def begun(self) -> list[float]:
        """Return when each call began, in seconds since the epoch."""
        return sorted(float(mark.read_text() or "0") for mark in self._directory.glob("begun-*"))

    def cancelled(self) -> int:
        """Return how many calls were cancelled."""
        return len(list(self._directory.glob("cancelled-*")))

    def let_go(self) -> None:
        """Let all calls end."""
        (self._directory / "go").touch()
