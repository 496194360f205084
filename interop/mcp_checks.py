"""Checks that any MCP client must pass at Toolbelt's endpoint.

A part defines in :meth:`Checks.connecting` how its client connects, and the checks run with that client. They cover
listing, calling, refusals, subscriptions, and both ways to load tools on request. This module uses only the standard
library and pytest, like kit.py.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import kit
import pytest

GUEST = kit.OTHER_AGENT
TOKENS = {kit.AGENT: kit.TOKEN, GUEST: kit.OTHER_TOKEN}
INVALID_PARAMS = -32602
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
META_TOOLS = {"call_tool", "list_toolkits", "load_tools", "search_tools", "unload_tools"}
# Longer than anything here takes, so a wait that reaches it is a defect.
TIMEOUT = 20.0

T = TypeVar("T")


class RequestError(Exception):
    """The server responded to a request with an error instead of a result."""

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


class Client(Protocol):
    """A connected client, which is notified of changes from then on."""

    @property
    def version(self) -> str:
        """The negotiated revision of the protocol."""

    @property
    def instructions(self) -> str:
        """The server's instructions for the model, or an empty text."""

    @property
    def changes(self) -> Changes:
        """The notifications that the client received."""

    async def tools(self) -> Mapping[str, Any]:
        """List all tools by name, as MCP writes them."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool, and return the result as MCP writes it. Raise :class:`RequestError` for an error."""


class Changes:
    """The number of times that a client was notified of a changed list."""

    def __init__(self) -> None:
        self.count = 0
        self._condition = asyncio.Condition()

    async def record(self) -> None:
        """Record a notification."""
        async with self._condition:
            self.count += 1
            self._condition.notify_all()

    async def wait_for(self, count: int) -> None:
        """Wait until the client was notified this many times."""
        async with asyncio.timeout(TIMEOUT), self._condition:
            await self._condition.wait_for(lambda: self.count >= count)


def address(agent: str, session: str = "") -> str:
    """Return the address of an agent's endpoint, or of a session at it."""
    return f"{kit.ADDRESS}/mcp/{agent}" + (f"/s/{session}" if session else "")


async def in_thread(action: Any, *arguments: Any) -> Any:
    """Run an operator's action in a thread."""
    return await asyncio.to_thread(action, *arguments)


async def in_time(awaited: Awaitable[T]) -> T:
    """Await a result, with a time limit."""
    async with asyncio.timeout(TIMEOUT):
        return await awaited


@contextlib.contextmanager
def listing(agent: str = kit.AGENT) -> Iterator[None]:
    """Let load_tools extend the list of an agent's clients, instead of dispatching calls."""
    kit.operator("PATCH", f"agents/{agent}", {"changes": {"mcp_loading": "list"}})
    try:
        yield
    finally:
        kit.operator("PATCH", f"agents/{agent}", {"changes": {"mcp_loading": "dispatch"}})


@contextlib.contextmanager
def restored_switches(*toolkits: str, agent: str = kit.AGENT) -> Iterator[None]:
    """Restore an agent's switches of these toolkits afterwards."""
    before = kit.operator("GET", f"agents/{agent}/tools-config")
    try:
        yield
    finally:
        for toolkit in toolkits:
            kit.switch(toolkit, before.get(toolkit), agent)


def tested_tools(tools: Mapping[str, Any]) -> set[str]:
    """Return the names of the desk's tools and of Toolbelt's own, without the demo's."""
    return {name for name in tools if name.startswith("desk__") or name in META_TOOLS}


def text(result: Mapping[str, Any]) -> str:
    """Return all text of a result."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def is_unknown(result: Mapping[str, Any], tool: str) -> bool:
    """Return whether a result says that the agent may call no tool of this name."""
    refusal = f"There is no tool named {tool!r} that you may call."
    return result.get("isError") is True and text(result).startswith(refusal)


def structured_content(result: Mapping[str, Any]) -> Any:
    """Return the structured content of a result, read from its text, which has it as JSON."""
    assert not result.get("isError"), result
    return json.loads(next(block["text"] for block in result["content"] if block["type"] == "text"))


@contextlib.contextmanager
def single_error() -> Iterator[None]:
    """Raise the only error of a group, or of nested groups, instead of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


@pytest.mark.anyio
class Checks(abc.ABC):
    """The checks. ``version`` is the revision that the client negotiates."""

    version = HANDSHAKE

    @abc.abstractmethod
    def connecting(self, agent: str, session: str) -> contextlib.AbstractAsyncContextManager[Client]:
        """Connect to an agent's endpoint with its token, and subscribe to changes of the list."""

    @contextlib.asynccontextmanager
    async def connected(self, agent: str = kit.AGENT, session: str = "") -> AsyncIterator[Client]:
        """Connect, and raise errors without their groups."""
        with single_error():
            async with self.connecting(agent, session) as client:
                yield client

    async def test_the_list_contains_the_tools_that_the_agent_may_use(self) -> None:
        async with self.connected() as client:
            assert client.version == self.version
            tools = await in_time(client.tools())
            assert tested_tools(tools) == {
                "call_tool",
                "search_tools",
                *(f"desk__{name}" for name in ("add", "fail", "order", "wait")),
            }
            assert [*tools] == sorted(tools)
            add = tools["desk__add"]
            assert add["inputSchema"]["required"] == ["a", "b"]
            assert add["outputSchema"]["properties"]["sum"]["type"] == "integer"
            assert add["annotations"]["readOnlyHint"] is True
            assert add["_meta"] == {"toolbelt/toolkits": ["arithmetic"]}
        async with self.connected(GUEST) as client:
            assert tested_tools(await in_time(client.tools())) == {"desk__wait"}

    async def test_the_policy_is_the_instructions(self) -> None:
        async with self.connected() as client:
            assert "Never add in your head" in client.instructions
            assert "Notes are public" not in client.instructions

    async def test_a_tool_runs(self) -> None:
        before = len(kit.calls(agent=kit.AGENT, tool="desk__order"))
        async with self.connected() as client:
            await in_time(client.tools())
            result = await in_time(client.call("desk__add", {"a": 2, "b": 40}))
            assert structured_content(result) == {"sum": 42}
            assert result["structuredContent"] == {"sum": 42}
            order = {"lines": [{"item": "pen", "count": 3}, {"item": "ink"}], "pace": "rush"}
            result = await in_time(client.call("desk__order", {"order": order}))
            assert "4 things are on their way, rush." in text(result)
        newest, *others = kit.recorded(before + 1, agent=kit.AGENT, tool="desk__order")
        assert (newest["outcome"], len(others)) == ("ok", before)

    async def test_an_error_in_a_tool_is_a_result_that_the_model_reads(self) -> None:
        async with self.connected() as client:
            failed = await in_time(client.call("desk__fail", {"because": "rain"}))
            assert failed["isError"] is True
            assert "The desk is closed: rain." in text(failed)
            invalid = await in_time(client.call("desk__add", {"a": "two"}))
            assert invalid["isError"] is True
            assert "'b' is a required property" in text(invalid)

    async def test_a_hidden_tool_is_refused_like_one_that_does_not_exist(self) -> None:
        async with self.connected(GUEST) as client:
            for tool in ("desk__add", "desk__nothing"):
                assert is_unknown(await in_time(client.call(tool, {"a": 1, "b": 2})), tool)

    async def test_a_flip_notifies_only_the_agents_clients(self) -> None:
        async with self.connected() as desk, self.connected(GUEST) as guest:
            with restored_switches("arithmetic"):
                assert "desk__add" in await in_time(desk.tools())
                await in_thread(kit.switch, "arithmetic", False)
                await desk.changes.wait_for(1)
                assert "desk__add" not in await in_time(desk.tools())
                assert is_unknown(await in_time(desk.call("desk__add", {"a": 1, "b": 2})), "desk__add")
            await desk.changes.wait_for(2)
            assert "desk__add" in await in_time(desk.tools())
            assert guest.changes.count == 0
            await in_thread(kit.override, "desk__fail", True, GUEST)
            try:
                await guest.changes.wait_for(1)
                assert tested_tools(await in_time(guest.tools())) == {"desk__fail", "desk__wait"}
            finally:
                await in_thread(kit.override, "desk__fail", None, GUEST)
            await guest.changes.wait_for(2)
            assert (desk.changes.count, guest.changes.count) == (2, 2)

    async def test_a_flip_without_an_effect_notifies_no_client(self) -> None:
        async with self.connected() as client:
            with restored_switches("desk_notes", "orders"):
                # The tool is already on by its toolkit, so these overrides have no effect.
                await in_thread(kit.override, "desk__add", True)
                await in_thread(kit.override, "desk__add", None)
                await in_thread(kit.switch, "orders", False)
                await client.changes.wait_for(1)
            await client.changes.wait_for(2)
            assert client.changes.count == 2

    async def test_a_hidden_tool_is_refused_immediately(self) -> None:
        async with self.connected() as client:
            for _ in range(5):
                assert structured_content(await in_time(client.call("desk__add", {"a": 1, "b": 1}))) == {
                    "sum": 2
                }
                with kit.switched("arithmetic", on=False):
                    assert is_unknown(await in_time(client.call("desk__add", {"a": 1, "b": 1})), "desk__add")

    async def test_dispatch_searches_and_calls_without_changing_the_list(self) -> None:
        async with self.connected() as client:
            before = await in_time(client.tools())
            results = structured_content(await in_time(client.call("search_tools", {"query": "put a note"})))[
                "results"
            ]
            hit = next(result for result in results if result["tool"] == "desk__add_note")
            assert hit["input_schema"]["required"] == ["text"]
            arguments = {"tool": "desk__add_note", "arguments": {"text": self.version}}
            assert f"Noted: {self.version}" in text(await in_time(client.call("call_tool", arguments)))
            assert await in_time(client.tools()) == before
            with kit.switched("desk_notes", on=False):
                assert is_unknown(await in_time(client.call("call_tool", arguments)), "desk__add_note")

    async def test_loading_extends_the_list_if_the_revision_allows_it(self) -> None:
        with listing():
            async with self.connected(session=kit.session()) as client:
                before = {*await in_time(client.tools())}
                if self.version == MODERN:
                    assert "load_tools" not in before
                    return
                assert {"load_tools", "list_toolkits", "unload_tools"} <= before
                assert (
                    structured_content(await in_time(client.call("load_tools", {"toolkit": "desk_notes"})))[
                        "status"
                    ]
                    == "loaded"
                )
                await client.changes.wait_for(1)
                extended = {*await in_time(client.tools())}
                assert extended - before == {"desk__add_note", "desk__read_notes"}
                assert "Noted: hello" in text(await in_time(client.call("desk__add_note", {"text": "hello"})))
                assert (
                    structured_content(await in_time(client.call("unload_tools", {"toolkit": "desk_notes"})))[
                        "status"
                    ]
                    == "unloaded"
                )
                await client.changes.wait_for(2)
                assert {*await in_time(client.tools())} == before

    async def test_a_load_affects_only_its_own_session(self) -> None:
        if self.version == MODERN:
            pytest.skip("lists do not grow in this revision")
        with listing():
            async with (
                self.connected(session=kit.session()) as first,
                self.connected(session=kit.session()) as second,
            ):
                await in_time(first.call("load_tools", {"toolkit": "desk_notes"}))
                await first.changes.wait_for(1)
                assert "desk__add_note" in await in_time(first.tools())
                assert "desk__add_note" not in await in_time(second.tools())
                assert second.changes.count == 0

    async def test_a_token_is_accepted_only_at_its_own_agents_endpoint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for wrong in ("", "tb_wrong", TOKENS[GUEST]):
            monkeypatch.setitem(TOKENS, kit.AGENT, wrong)
            with pytest.raises(Exception) as refused:  # noqa: PT011 - each client has its own errors
                async with asyncio.timeout(TIMEOUT), self.connected() as client:
                    await client.tools()
            assert not isinstance(refused.value, TimeoutError)


async def pages(fetch_page: Any) -> AsyncIterator[Any]:
    """Yield all pages of a list. ``fetch_page`` takes a cursor, and returns a page, which may have ``nextCursor``."""
    cursor = None
    while True:
        page = await fetch_page(cursor)
        yield page
        if (cursor := page.get("nextCursor")) is None:
            return
