"""Tests that a call is checked, answered in MCP's form, reports its progress, and ends when it is cancelled."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, NoReturn

import pytest
from asgiref.sync import sync_to_async
from django.test import Client as Browser

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, Client, Endpoint, Request, run
from tests.mcp.slow_tools import call_request, slow_tool
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install
from toolbelt import models
from toolbelt.control import undo
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens, schema
from toolbelt.mcp import protocol, results, tool_calls
from toolbelt.runtime import calls

KB = [tool.name for tool in sample_plugins.Kb.tools]
AGENT = {
    "key": "ada",
    "tools": [key for key in KB if key not in ("kb__plain", "kb__odd", "kb__large")],
    "allowed_toolkits": ["more"],
}
MORE = {"key": "more", "members": [{"tool": "kb__plain", "options": {"depth": 2}}]}


@pytest.fixture
def token(transactional_db: None, install: Install) -> str:
    """Return a token of an agent with a plugin's tools and a loadable toolkit."""
    install("Kb", config="api_key: sesame-2000", toolkits=[MORE], agents=[AGENT])
    return tokens.issue(SETUP, agent="ada").text


@pytest.fixture
def stored(transactional_db: None) -> None:
    """Store nothing: the fixture ``token`` installs what the tests need."""


@pytest.fixture(params=["2025-11-25", NEW])
def client(request: Any, token: str, endpoint: Endpoint) -> Client:
    return Client(endpoint=endpoint, token=token, version=request.param)


@pytest.fixture
def old(token: str, endpoint: Endpoint) -> Client:
    return Client(endpoint=endpoint, token=token)


def text(result: Any) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])


def test_a_call_returns_its_result_as_text(client: Client):
    result = client.call("kb__search", {"query": "é"}).result
    assert text(result) == '{"results":["é"]}'
    assert result["isError"] is False
    assert "structuredContent" not in result
    assert result.get("resultType") == ("complete" if client.version == NEW else None)


def test_a_call_is_recorded_with_its_session_and_request_id(client: Client):
    answer = dataclasses.replace(client, path="/mcp/ada/s/s1").call("kb__search", {"query": "x"})
    record = models.CallRecord.objects.get()
    assert (record.agent, record.session, record.tool, record.outcome) == ("ada", "s1", "kb__search", "ok")
    assert record.request_id == answer.headers["x-request-id"]


def test_a_tool_with_an_output_schema_returns_structured_content(client: Client):
    belts.import_(
        SETUP, {"tools": [{"key": "kb__search", "plugin": "kb", "output_schema": {"type": "object"}}]}
    )
    models.Tool.objects.filter(key="kb__search").update(input_schema=sample_plugins.QUERY)
    result = client.call("kb__search", {"query": "x"}).result
    assert result["structuredContent"] == {"results": ["x"]}
    assert text(result) == '{"results":["x"]}'


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "message"),
    [
        ("kb__fail", {}, "tool-failed", "The index is being rebuilt: try again in an hour."),
        ("kb__crash", {}, "tool-failed", "kb__crash failed. The error was logged for an operator."),
        ("kb__search", {"query": 7}, "invalid-arguments", "The arguments do not fit kb__search: query:"),
    ],
)
def test_a_failed_call_returns_a_readable_error_result(
    client: Client, tool: str, arguments: Any, code: str, message: str
):
    result = client.call(tool, arguments).result
    assert result["isError"] is True
    assert text(result).startswith(message)
    assert result["_meta"][results.REFUSAL]["code"] == code


def test_blocking_a_plugin_refuses_its_calls_immediately_over_mcp_and_http(client: Client, token: str):
    web = Browser(headers={"Authorization": f"Bearer {token}"})

    def over_http() -> Any:
        body = {"tool": "kb__search", "arguments": {"query": "x"}}
        return web.post("/api/v1/agents/ada/calls", body, "application/json").json()

    assert client.call("kb__search", {"query": "x"}).result["isError"] is over_http()["is_error"] is False
    stopped = blocking.set_blocked(SETUP, "plugin", "kb", True, was=False)
    assert stopped.agents["ada"] == len(AGENT["tools"])
    assert client.call("kb__search", {"query": "x"}).is_unknown
    assert over_http()["code"] == "tool-denied"
    assert "kb__search" not in [tool["name"] for tool in client.ask("tools/list").result["tools"]]
    undo.undo(SETUP, stopped.entry or 0)
    assert client.call("kb__search", {"query": "x"}).result["isError"] is over_http()["is_error"] is False


def test_unknown_hidden_and_denied_tools_get_the_same_result(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    messages = {}
    for name in ("kb__nothing", "kb__odd", "kb__plain", "kb__who", "load_tools", "list_toolkits"):
        result = client.call(name, {}).result
        messages[schema.canonical(result).replace(name, "X")] = name
    assert len(messages) == 1


def test_a_tool_is_refused_immediately_after_it_was_denied(client: Client):
    assert client.call("kb__search", {"query": "x"}).result["isError"] is False
    switches.override(SETUP.replace(confirm=True), "ada", "kb__search", False)
    assert client.call("kb__search", {"query": "x"}).is_unknown


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": "kb__search", "arguments": [1]}])
def test_a_call_without_a_valid_name_and_arguments_is_refused(client: Client, params: Any):
    assert client.ask("tools/call", params).error["code"] == protocol.INVALID_PARAMS


# Through call_tool


def test_a_search_returns_schemas_and_explains_how_to_call(client: Client):
    result = client.call("search_tools", {"query": "plain"}).result
    assert '"tool":"kb__plain"' in text(result)
    assert '"input_schema":{' in text(result)
    assert "call_tool" in text(result)
    assert "load_tools" not in text(result)


def test_call_tool_activates_a_loadable_tool_for_one_call(client: Client):
    result = client.call("call_tool", {"tool": "kb__plain"}).result
    assert result["isError"] is False
    record = models.CallRecord.objects.latest("id")
    assert (record.tool, record.plugin, record.outcome) == ("kb__plain", "kb", "ok")
    assert (record.dispatched, record.reason) == (True, "loadable")
    assert client.call("kb__plain", {}).is_unknown
    assert models.AgentSession.objects.count() == 0


def test_call_tool_applies_the_options_of_the_loadable_toolkit(client: Client):
    belts.import_(
        SETUP,
        {
            "toolkits": [{"key": "more", "members": [{"tool": "kb__who", "options": {"depth": 2}}]}],
            "agents": [{**AGENT, "tools": ["kb__search"]}],
        },
    )
    assert '"options":{"depth":2}' in text(client.call("call_tool", {"tool": "kb__who"}).result)


def test_call_tool_can_call_active_tools(client: Client):
    result = client.call("call_tool", {"tool": "kb__search", "arguments": {"query": "x"}}).result
    assert text(result) == '{"results":["x"]}'


def test_call_tool_does_not_reach_denied_tools(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", False)
    messages = {}
    for name in ("kb__plain", "kb__odd", "kb__nothing", "search_tools", "call_tool", "load_tools"):
        answer = client.call("call_tool", {"tool": name, "arguments": {}})
        assert answer.is_unknown, name
        messages[schema.canonical(answer.result).replace(name, "X")] = name
    assert len(messages) == 1


def test_invalid_arguments_are_reported_with_their_path(client: Client):
    inner = client.call("call_tool", {"tool": "kb__search", "arguments": {"query": 7}}).result
    outer = client.call("call_tool", {"name": "kb__search"}).result
    assert (inner["isError"], outer["isError"]) == (True, True)
    assert "query" in text(inner)
    assert "call_tool" in text(outer)


# A list that grows


def test_a_loaded_toolkit_is_announced_and_listed_in_its_session(token: str, endpoint: Endpoint):
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    client = Client(endpoint=endpoint, token=token, path="/mcp/ada/s/s1")
    assert "kb__plain" not in client.names()
    messages = client.call("load_tools", {"toolkit": "more"}).messages()
    assert [message.get("method") for message in messages] == [protocol.LIST_CHANGED, None]
    assert '"status":"loaded"' in messages[1]["result"]["content"][0]["text"]
    assert "added: kb__plain" in messages[1]["result"]["content"][1]["text"]
    assert "kb__plain" in client.names()
    assert "kb__plain" not in dataclasses.replace(client, path="/mcp/ada/s/s2").names()
    assert client.call("kb__plain", {}).result["isError"] is False
    assert client.call("call_tool", {"tool": "kb__plain"}).is_unknown


def test_a_client_without_event_streams_sees_the_change_in_the_result(token: str, endpoint: Endpoint):
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    client = Client(endpoint=endpoint, token=token, path="/mcp/ada/s/s1")
    client.names()
    result = client.call("load_tools", {"toolkit": "more"}, accept="application/json").result
    assert "added: kb__plain" in result["content"][1]["text"]


# Changes announced with results


def test_a_change_is_announced_once_in_the_next_result(client: Client):
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", True)
    first, second = (client.call("kb__search", {"query": "x"}).result for _ in range(2))
    assert first["content"][0]["text"] == '{"results":["x"]}'
    # With kb__who, the last tool is gone that could be called without being listed.
    assert "added: kb__plain; removed: call_tool, kb__who, search_tools" in first["content"][1]["text"]
    assert len(second["content"]) == 1


def test_a_change_is_announced_with_a_refusal(client: Client):
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    refusal, notice = client.call("kb__who", {}).result["content"]
    assert refusal["text"] == "There is no tool named 'kb__who' that you may call."
    assert "removed: kb__who" in notice["text"]


def test_a_change_is_not_announced_without_an_outdated_list(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    assert len(client.call("kb__search", {"query": "x"}).result["content"]) == 1
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", None)
    client.names()
    assert len(client.call("kb__search", {"query": "x"}).result["content"]) == 1


def test_the_session_id_reveals_a_change_to_another_process(old: Client):
    session = old.ask("initialize", {"protocolVersion": old.version}).headers["mcp-session-id"]
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    elsewhere = dataclasses.replace(old, endpoint=Endpoint(old.endpoint.answers), session=session)
    result = elsewhere.call("kb__search", {"query": "x"}).result
    assert result["content"][1]["text"] == "The tools that you may call have changed. List them again."


# Progress and disconnecting


def test_progress_is_sent_before_the_result(client: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> list[Any]:
        tool = slow_tool(monkeypatch)
        async with client.endpoint.serving():
            exchange = client.endpoint.exchange(call_request(client))
            _, headers = await exchange.started()
            messages = [await exchange.message(), await exchange.message()]
            tool.released.set()
            return [headers["content-type"], *messages, await exchange.message(), await exchange.rest()]

    kind, first, second, last, rest = run(main)
    assert kind == "text/event-stream"
    assert first["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": "t1", "progress": 1, "total": 3, "message": "reading"}
    assert second["params"] == {"progressToken": "t1", "progress": 2.5}
    assert (last["id"], last["result"]["content"][0]["text"], rest) == (1, "done", b"")


def test_progress_is_sent_only_if_requested_and_accepted(client: Client, monkeypatch: pytest.MonkeyPatch):
    for request in (
        client.request("tools/call", {"name": "kb__search"}),
        dataclasses.replace(
            call_request(client), headers={**call_request(client).headers, "accept": "application/json"}
        ),
    ):

        async def main(request: Request = request) -> Any:
            tool = slow_tool(monkeypatch)
            tool.released.set()
            return await client.endpoint.asend(request)

        assert text(run(main).result) == "done"


def test_a_long_call_sends_keep_alives(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tool_calls, "KEEP_ALIVE_SECONDS", 0.01)

    async def main() -> tuple[dict[str, str], Any]:
        tool = slow_tool(monkeypatch)
        exchange = client.endpoint.exchange(client.request("tools/call", {"name": "kb__search"}))
        keep_alive = await exchange.event()
        tool.released.set()
        return keep_alive, await exchange.message()

    keep_alive, last = run(main)
    assert keep_alive == {"": "still at work"}
    assert last["result"]["content"][0]["text"] == "done"


def test_disconnecting_cancels_a_call_in_the_second_era(
    token: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    client = Client(endpoint=endpoint, token=token, version=NEW)

    async def main() -> bool:
        tool = slow_tool(monkeypatch)
        exchange = client.endpoint.exchange(call_request(client))
        await tool.started.wait()
        exchange.disconnect()
        await exchange.task
        return tool.was_cancelled

    assert run(main)


def test_disconnecting_does_not_cancel_a_call_in_the_first_era(old: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> bool:
        tool = slow_tool(monkeypatch)
        exchange = old.endpoint.exchange(call_request(old))
        await tool.started.wait()
        exchange.disconnect()
        await asyncio.sleep(0.05)
        tool.released.set()
        await exchange.task
        return tool.was_cancelled

    assert not run(main)


def test_a_call_is_refused_if_its_token_is_revoked_while_it_waits(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    async def waiting(call: calls.Call, caller: calls.Caller) -> NoReturn:
        await sync_to_async(caller.may_call)()
        prefix = api_tokens.prefix(client.token)
        await sync_to_async(tokens.revoke)(SETUP, prefix)
        await sync_to_async(caller.may_call)()
        raise AssertionError("it may still call")

    monkeypatch.setattr(calls, "answer", waiting)

    assert client.call("kb__search", {"query": "x"}).status == 401


def test_a_cancelled_call_cancels_its_tool_and_is_recorded(token: str, endpoint: Endpoint):
    client = Client(endpoint=endpoint, token=token, version=NEW)
    sample_plugins.STARTED.clear()
    sample_plugins.CANCELLED.clear()

    async def main() -> None:
        exchange = client.endpoint.exchange(client.request("tools/call", {"name": "kb__hang"}))
        await asyncio.to_thread(sample_plugins.STARTED.wait, 20)
        exchange.disconnect()
        await exchange.task

    run(main)
    assert sample_plugins.CANCELLED.wait(20)
    assert models.CallRecord.objects.get().outcome == "cancelled"
