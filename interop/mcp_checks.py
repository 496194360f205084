"""Checks that any MCP client must pass at Toolbelt's endpoint.

A part says in :meth:`Checks.connecting` how its client connects; these checks then run with that client. So all of
them prove the same: listing, calling, refusing, subscribing, and both ways to load on demand. Of the standard library
and pytest alone, as kit.py is.
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
# Longer than anything here takes: a wait that reaches it is a defect.
SECONDS = 20.0

Answered = TypeVar("Answered")


class Refused(Exception):
    """The server answered a request with an error instead of a result."""

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


class Client(Protocol):
    """A client that is connected, and hears of changes from then on."""

    @property
    def version(self) -> str:
        """The revision of the protocol that both speak."""

    @property
    def instructions(self) -> str:
        """What the server tells the model, empty for nothing."""

    @property
    def changes(self) -> Changes:
        """What it heard of changes."""

    async def tools(self) -> Mapping[str, Any]:
        """List all tools, by name, as MCP writes them."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool, and give the result as MCP writes it. Raises :class:`Refused`."""


class Changes:
    """How often a client heard that its list of tools changed."""

    def __init__(self) -> None:
        self.count = 0
        self._heard = asyncio.Condition()

    async def hear(self) -> None:
        async with self._heard:
            self.count += 1
            self._heard.notify_all()

    async def reach(self, count: int) -> None:
        """Wait until it heard of that many."""
        async with asyncio.timeout(SECONDS), self._heard:
            await self._heard.wait_for(lambda: self.count >= count)


def address(agent: str, session: str = "") -> str:
    """Return where an agent's endpoint is, for clients that keep a session and for those that keep none."""
    return f"{kit.ADDRESS}/mcp/{agent}" + (f"/s/{session}" if session else "")


async def aside(act: Any, *given: Any) -> Any:
    """Do as an operator does, beside what the client has under way."""
    return await asyncio.to_thread(act, *given)


async def in_time(awaited: Awaitable[Answered]) -> Answered:
    async with asyncio.timeout(SECONDS):
        return await awaited


@contextlib.contextmanager
def listing(agent: str = kit.AGENT) -> Iterator[None]:
    """Let the list of an agent's clients grow by load_tools, instead of dispatching."""
    kit.operator("PATCH", f"agents/{agent}", {"changes": {"mcp_loading": "list"}})
    try:
        yield
    finally:
        kit.operator("PATCH", f"agents/{agent}", {"changes": {"mcp_loading": "dispatch"}})


@contextlib.contextmanager
def as_found(*toolkits: str, agent: str = kit.AGENT) -> Iterator[None]:
    """Leave an agent's switches of these toolkits as they were."""
    before = kit.operator("GET", f"agents/{agent}/tools-config")
    try:
        yield
    finally:
        for toolkit in toolkits:
            kit.switch(toolkit, before.get(toolkit), agent)


def own(tools: Mapping[str, Any]) -> set[str]:
    """Return the names of the desk's tools and of Toolbelt's own; the demo gives every agent a few more."""
    return {name for name in tools if name.startswith("desk__") or name in META_TOOLS}


def text(result: Mapping[str, Any]) -> str:
    """Return all text of a result."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def said(result: Mapping[str, Any]) -> Any:
    """Return what a tool answered, which stands in the text as JSON."""
    assert not result.get("isError"), result
    return json.loads(next(block["text"] for block in result["content"] if block["type"] == "text"))


@contextlib.contextmanager
def single_error() -> Iterator[None]:
    """Raise the only error of a group, or of a group of groups, in place of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


@pytest.mark.anyio
class Checks(abc.ABC):
    """The proof; ``version`` is the revision that this client comes to speak."""

    version = HANDSHAKE

    @abc.abstractmethod
    def connecting(self, agent: str, session: str) -> contextlib.AbstractAsyncContextManager[Client]:
        """Connect to an agent's endpoint with its token, and subscribe to changes of the list."""

    @contextlib.asynccontextmanager
    async def connected(self, agent: str = kit.AGENT, session: str = "") -> AsyncIterator[Client]:
        """Connect, and raise what goes wrong as it is."""
        with single_error():
            async with self.connecting(agent, session) as client:
                yield client

    async def test_the_list_holds_what_the_agent_may_use(self) -> None:
        async with self.connected() as client:
            assert client.version == self.version
            tools = await in_time(client.tools())
            assert own(tools) == {
                "call_tool",
                "search_tools",
                *(f"desk__{one}" for one in ("add", "fail", "order", "wait")),
            }
            assert [*tools] == sorted(tools)
            add = tools["desk__add"]
            assert add["inputSchema"]["required"] == ["a", "b"]
            assert add["outputSchema"]["properties"]["sum"]["type"] == "integer"
            assert add["annotations"]["readOnlyHint"] is True
            assert add["_meta"] == {"toolbelt/toolkits": ["arithmetic"]}
        async with self.connected(GUEST) as client:
            assert own(await in_time(client.tools())) == {"desk__wait"}

    async def test_the_policy_is_the_instructions(self) -> None:
        async with self.connected() as client:
            assert "Never add in your head" in client.instructions
            assert "Notes are public" not in client.instructions

    async def test_a_tool_runs(self) -> None:
        before = len(kit.calls(agent=kit.AGENT, tool="desk__order"))
        async with self.connected() as client:
            await in_time(client.tools())
            result = await in_time(client.call("desk__add", {"a": 2, "b": 40}))
            assert said(result) == {"sum": 42}
            assert result["structuredContent"] == {"sum": 42}
            order = {"lines": [{"item": "pen", "count": 3}, {"item": "ink"}], "pace": "rush"}
            result = await in_time(client.call("desk__order", {"order": order}))
            assert "4 things are on their way, rush." in text(result)
        newest, *others = kit.recorded(before + 1, agent=kit.AGENT, tool="desk__order")
        assert (newest["outcome"], len(others)) == ("ok", before)

    async def test_what_goes_wrong_in_a_tool_is_a_result_that_the_model_reads(self) -> None:
        async with self.connected() as client:
            failed = await in_time(client.call("desk__fail", {"because": "rain"}))
            assert failed["isError"] is True
            assert "The desk is closed: rain." in text(failed)
            unfit = await in_time(client.call("desk__add", {"a": "two"}))
            assert unfit["isError"] is True
            assert "'b' is a required property" in text(unfit)

    async def test_what_is_hidden_is_refused_like_what_there_is_not(self) -> None:
        async with self.connected(GUEST) as client:
            refusals = []
            for tool in ("desk__add", "desk__nothing"):
                with pytest.raises(Refused) as refused:
                    await in_time(client.call(tool, {"a": 1, "b": 2}))
                assert refused.value.code == INVALID_PARAMS
                refusals.append(refused.value.message.replace(tool, "that"))
            assert refusals[0] == refusals[1]

    async def test_a_flip_reaches_the_agents_clients_and_no_others(self) -> None:
        async with self.connected() as desk, self.connected(GUEST) as guest:
            with as_found("arithmetic"):
                assert "desk__add" in await in_time(desk.tools())
                await aside(kit.switch, "arithmetic", False)
                await desk.changes.reach(1)
                assert "desk__add" not in await in_time(desk.tools())
                with pytest.raises(Refused) as refused:
                    await in_time(desk.call("desk__add", {"a": 1, "b": 2}))
                assert refused.value.code == INVALID_PARAMS
            await desk.changes.reach(2)
            assert "desk__add" in await in_time(desk.tools())
            assert guest.changes.count == 0
            await aside(kit.override, "desk__fail", True, GUEST)
            try:
                await guest.changes.reach(1)
                assert own(await in_time(guest.tools())) == {"desk__fail", "desk__wait"}
            finally:
                await aside(kit.override, "desk__fail", None, GUEST)
            await guest.changes.reach(2)
            assert (desk.changes.count, guest.changes.count) == (2, 2)

    async def test_a_flip_that_changes_nothing_tells_no_one(self) -> None:
        async with self.connected() as client:
            with as_found("desk_notes", "orders"):
                # On for arithmetic already; and on twice.
                await aside(kit.override, "desk__add", True)
                await aside(kit.override, "desk__add", None)
                await aside(kit.switch, "orders", False)
                await client.changes.reach(1)
            await client.changes.reach(2)
            assert client.changes.count == 2

    async def test_a_tool_hidden_a_moment_ago_is_refused_at_once(self) -> None:
        async with self.connected() as client:
            for _ in range(5):
                assert said(await in_time(client.call("desk__add", {"a": 1, "b": 1}))) == {"sum": 2}
                with kit.switched("arithmetic", on=False), pytest.raises(Refused):
                    await in_time(client.call("desk__add", {"a": 1, "b": 1}))

    async def test_dispatch_searches_and_calls_in_a_list_that_stays(self) -> None:
        async with self.connected() as client:
            before = await in_time(client.tools())
            found = said(await in_time(client.call("search_tools", {"query": "put a note"})))["results"]
            hit = next(one for one in found if one["tool"] == "desk__add_note")
            assert hit["input_schema"]["required"] == ["text"]
            noted = {"tool": "desk__add_note", "arguments": {"text": self.version}}
            assert f"Noted: {self.version}" in text(await in_time(client.call("call_tool", noted)))
            assert await in_time(client.tools()) == before
            with kit.switched("desk_notes", on=False), pytest.raises(Refused) as refused:
                await in_time(client.call("call_tool", noted))
            assert refused.value.code == INVALID_PARAMS

    async def test_a_list_grows_by_loading_where_the_revision_allows_it(self) -> None:
        with listing():
            async with self.connected(session=kit.session()) as client:
                before = {*await in_time(client.tools())}
                if self.version == MODERN:
                    assert "load_tools" not in before
                    return
                assert {"load_tools", "list_toolkits", "unload_tools"} <= before
                assert (
                    said(await in_time(client.call("load_tools", {"toolkit": "desk_notes"})))["status"]
                    == "loaded"
                )
                await client.changes.reach(1)
                grown = {*await in_time(client.tools())}
                assert grown - before == {"desk__add_note", "desk__read_notes"}
                assert "Noted: hello" in text(await in_time(client.call("desk__add_note", {"text": "hello"})))
                assert (
                    said(await in_time(client.call("unload_tools", {"toolkit": "desk_notes"})))["status"]
                    == "unloaded"
                )
                await client.changes.reach(2)
                assert {*await in_time(client.tools())} == before

    async def test_two_conversations_load_apart(self) -> None:
        if self.version == MODERN:
            pytest.skip("lists do not grow in this revision")
        with listing():
            async with (
                self.connected(session=kit.session()) as one,
                self.connected(session=kit.session()) as two,
            ):
                await in_time(one.call("load_tools", {"toolkit": "desk_notes"}))
                await one.changes.reach(1)
                assert "desk__add_note" in await in_time(one.tools())
                assert "desk__add_note" not in await in_time(two.tools())
                assert two.changes.count == 0

    async def test_a_token_opens_its_own_agents_endpoint_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for wrong in ("", "tb_wrong", TOKENS[GUEST]):
            monkeypatch.setitem(TOKENS, kit.AGENT, wrong)
            with pytest.raises(Exception) as refused:  # noqa: PT011 - each client has errors of its own
                async with asyncio.timeout(SECONDS), self.connected() as client:
                    await client.tools()
            assert not isinstance(refused.value, TimeoutError)


async def pages(ask: Any) -> AsyncIterator[Any]:
    """Return all pages of a list; ``ask`` takes a cursor, and gives what has ``nextCursor``."""
    cursor = None
    while True:
        page = await ask(cursor)
        yield page
        if (cursor := page.get("nextCursor")) is None:
            return
