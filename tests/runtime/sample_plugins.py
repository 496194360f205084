"""Plugins that work, fail, wait or misbehave, for tests of the runtime. The plugins file names their classes."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

import toolbelt

# Tools set STARTED and CANCELLED; tests set RELEASED to let blocked tools finish.
STARTED, CANCELLED, RELEASED = threading.Event(), threading.Event(), threading.Event()
# One entry for each call of a tool that blocks until it is released.
HOLDING: list[int] = []


def reset() -> None:
    """Reset what tools of an earlier test have recorded."""
    for event in (STARTED, CANCELLED, RELEASED):
        event.clear()
    HOLDING.clear()


async def wait_for_release() -> None:
    """Wait until the test releases the tools."""
    while not RELEASED.is_set():  # noqa: ASYNC110 (it is set in the thread of the test)
        await asyncio.sleep(0.01)


def definition(name: str, **fields: Any) -> toolbelt.ToolDefinition:
    return toolbelt.ToolDefinition(name=name, **{"description": "x", **fields})


QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


class Bearer(str):
    """A string whose representation contains its value."""

    def __repr__(self) -> str:
        return f"<Bearer {super().__repr__()}>"


# The options of the last call of kb__who.
seen_options: dict[str, Any] = {}


def recorded_searches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list, to which kb__search adds the arguments with which it runs."""
    ran: list[Any] = []

    async def search(self: Any, args: dict[str, Any]) -> Any:
        ran.append(args)
        return {"results": []}

    monkeypatch.setattr(Kb, "search", search)
    return ran


class Kb(toolbelt.ToolPlugin):
    """A plugin whose tools do what their names state."""

    name = "kb"
    namespace = "kb"
    tools = (
        definition("kb__search", description="Search.", input_schema=QUERY),
        *(
            definition(f"kb__{what}")
            for what in ("fail", "crash", "leak", "hang", "hold", "large", "odd", "plain", "who")
        ),
        *(
            definition(f"kb__{what}")
            for what in ("count", "wrong_secret", "visit", "take_long", "tell", "break")
        ),
    )

    async def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        self.runtime = runtime

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        return await getattr(self, tool_name.removeprefix("kb__").replace("break", "break_"))(args)

    async def search(self, args: dict[str, Any]) -> Any:
        return {"results": [args["query"]]}

    async def fail(self, args: dict[str, Any]) -> Any:
        raise toolbelt.ToolError("The index is being rebuilt: try again in an hour.")

    async def crash(self, args: dict[str, Any]) -> Any:
        raise KeyError("row 7 of the customers")

    async def leak(self, args: dict[str, Any]) -> Any:
        key = await self.runtime.secrets.retrieve("kb", "api_key")
        raise toolbelt.ToolError(f"GET /?key={key} gave 403")

    async def tell(self, args: dict[str, Any]) -> Any:
        key = await self.runtime.secrets.retrieve("kb", "api_key")
        self.runtime.log.info(f"asked with {key}", headers={"X-Key": key}, key=Bearer(key))
        logging.getLogger("some.library").warning("GET /?key=%s", key, stack_info=True)
        return {
            key: [key.encode().hex(), {"said": f"Bearer {key}"}],
            "config": self.runtime.config.get("place"),
        }

    async def break_(self, args: dict[str, Any]) -> Any:
        key = await self.runtime.secrets.retrieve("kb", "api_key")
        raise RuntimeError(f"401 for {key}") from ValueError(key)

    async def hang(self, args: dict[str, Any]) -> Any:
        STARTED.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            CANCELLED.set()
            raise

    async def hold(self, args: dict[str, Any]) -> Any:
        HOLDING.append(len(HOLDING) + 1)
        await wait_for_release()
        return {}

    async def take_long(self, args: dict[str, Any]) -> Any:
        await asyncio.sleep(0.2)
        return {}

    async def large(self, args: dict[str, Any]) -> Any:
        return {"text": "é" * 1000}

    async def odd(self, args: dict[str, Any]) -> Any:
        return {"results": [...]}

    async def plain(self, args: dict[str, Any]) -> Any:
        return ("one", 2)

    async def who(self, args: dict[str, Any]) -> Any:
        call = self.runtime.call
        assert call is not None
        seen_options.clear()
        seen_options.update(call.options or {})
        return {
            "agent": call.agent,
            "session": call.session,
            "request": call.request_id,
            "options": call.options,
            "active": {plugin: list(tools) for plugin, tools in call.active_tools.items()},
            "args": args,
        }

    async def count(self, args: dict[str, Any]) -> Any:
        seen = await self.runtime.state.get("seen", 0) + 1
        await self.runtime.state.set("seen", seen)
        return {"seen": seen}

    async def wrong_secret(self, args: dict[str, Any]) -> Any:
        return await self.runtime.secrets.retrieve("other", "api_key")

    async def visit(self, args: dict[str, Any]) -> Any:
        return (await self.runtime.http.get(args["url"])).text


class Slow(toolbelt.ToolPlugin):
    """A plugin that is initialized when the test releases it."""

    name = "slow"
    namespace = "slow"
    tools = (definition("slow__run"),)

    async def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        STARTED.set()
        await wait_for_release()

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        HOLDING.append(1)
        return {}


class Broken(toolbelt.ToolPlugin):
    """A plugin that fails to initialize."""

    name = "broken"
    namespace = "broken"
    tools = (definition("broken__run"),)

    def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        raise ConnectionError("the index is not there")

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        return {}


class Indiscreet(Broken):
    """A plugin that fails to initialize with a message that contains its configuration."""

    name = namespace = "indiscreet"
    tools = (definition("indiscreet__run"),)

    def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        raise ConnectionError(f"no index with {dict(runtime.config)}")


class Desk(toolbelt.CodeToolkit):
    """A toolkit whose policy names its active members, in their order."""

    key = "desk"
    title = "Desk"
    members = ("notes__write", "notes__read")
    options = {"notes__read": {"depth": 2}}
    policy_when_off = "You have no notes."

    def policy(self, context: toolbelt.PolicyContext) -> str:
        return f"Notes by {' and '.join(context.active_tools)}."

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus | None:
        if "note" not in context.message:
            return None
        return toolbelt.Focus(
            active_tools=("notes__write", "kb__search"), tool_choice="required", because="it says note"
        )


class Shaky(toolbelt.CodeToolkit):
    """A toolkit whose policy and directive always fail."""

    key = "shaky"
    members = ("notes__read",)

    def policy(self, context: toolbelt.PolicyContext) -> str:
        raise RuntimeError("no policy today")

    def directive(self, context: toolbelt.DirectiveContext) -> toolbelt.Focus:
        raise RuntimeError("no focus today")


class Notes(toolbelt.ToolPlugin):
    """A plugin with code toolkits."""

    name = "notes"
    namespace = "notes"
    tools = (definition("notes__read"), definition("notes__write"))
    toolkits = (Desk(), Shaky())

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        return {}
