"""Sample plugins: as authors write them, and misbehaving ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins import registry as registries

# The class from the specification ("Tool Plugins", Interface) verbatim, with imports from toolbelt.
SEED = '''
from toolbelt import ToolPlugin, RuntimeAPI, ToolDefinition

class MyToolPlugin(ToolPlugin):
    @property
    def name(self) -> str:
        return "my-tool-plugin"

    @property
    def namespace(self) -> str:
        return "mytool"

    @property
    def tools(self) -> list[ToolDefinition]:
        return [
            ToolDefinition(
                name="mytool__search",
                description="Search an external knowledge base",
                input_schema={
                    "type": "object",
                    "properties": {
                        "query": {"type": "string"}
                    },
                    "required": ["query"],
                },
            ),
        ]

    async def initialize(self, runtime: RuntimeAPI) -> None:
        """Called once at startup. Use runtime to access secrets, state, etc."""
        self.api_key = await runtime.secrets.retrieve("mytool", "api_key")

    async def execute(self, tool_name: str, args: dict) -> dict:
        """Called when the agent invokes one of this plugin's tools."""
        if tool_name == "mytool__search":
            # Perform the search
            return {"results": [...]}
        raise ValueError(f"Unknown tool: {tool_name}")

    async def shutdown(self) -> None:
        """Called when the runtime shuts down."""
        pass
'''


def definition(name: str = "kb__search", **fields: Any) -> contract.ToolDefinition:
    return contract.ToolDefinition(**{"name": name, "description": "Search.", **fields})


class Sample(contract.ToolPlugin):
    """A plugin with given steps that counts their calls. Without a step, a call returns its arguments."""

    name, namespace, category = "knowledge", "kb", ""
    tools: Sequence[Any] = ()
    toolkits: Sequence[Any] = ()

    def __init__(
        self,
        name: str = "knowledge",
        namespace: str = "kb",
        tools: Sequence[Any] | None = None,
        *,
        execute: Callable[[str, dict[str, Any]], Any] | None = None,
        initialize: Callable[[contract.RuntimeAPI], Any] | None = None,
        shutdown: Callable[[], Any] | None = None,
        toolkits: Sequence[Any] = (),
    ) -> None:
        self.name, self.namespace, self.toolkits = name, namespace, toolkits
        self.tools = (
            [definition(f"{namespace}__search" if namespace else "search")] if tools is None else tools
        )
        self._execute, self._initialize, self._shutdown = execute, initialize, shutdown
        self.initialized = self.stopped = 0
        self.runtime: Any = None
        self.threads: set[int] = set()

    def initialize(self, runtime: contract.RuntimeAPI) -> Any:
        self.initialized += 1
        self.runtime = runtime
        return self._initialize(runtime) if self._initialize else None

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        self.threads.add(threading.get_ident())
        return self._execute(tool_name, args) if self._execute else {"asked": args}

    def shutdown(self) -> Any:
        self.stopped += 1
        return self._shutdown() if self._shutdown else None


async def hang(*_: object) -> None:
    await asyncio.sleep(60)


async def hang_despite_cancellation(*_: object) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


def raising(error: BaseException) -> Callable[..., Any]:
    def step(*_: object) -> None:
        raise error

    return step


def state_of(registry: registries.ToolPluginRegistry, name: str = "knowledge") -> tuple[str, str]:
    [info] = [info for info in registry.list_plugins() if info.name == name]
    return info.state, info.error
