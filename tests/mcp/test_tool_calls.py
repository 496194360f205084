"""Tests that a call is admitted, answered in MCP's form, reports its progress, and ends when it is cancelled."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from asgiref.sync import sync_to_async
from django.test import Client as Browser

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, Client, Endpoint, Request, run
from tests.mcp.slow_tools import calling, progressing
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install
from toolbelt import models
from toolbelt.control import undo
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens
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
    """Return a token of an agent that has a plugin's tools, and could have another one."""
    install("Kb", config="api_key: sesame-2000", toolkits=[MORE], agents=[AGENT])
    return tokens.issue(SETUP, agent="ada").text


@pytest.fixture
def stored(transactional_db: None) -> None:
    """What the tests of lists start from is not there."""


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


def test_a_call_comes_back_as_a_text_that_a_model_reads(client: Client):
    result = client.call("kb__search", {"query": "é"}).result
    assert text(result) == '{"results":["é"]}'
    assert result["isError"] is False
    assert "structuredContent" not in result
    assert result.get("resultType") == ("complete" if client.version == NEW else None)


def test_a_call_is_recorded_with_its_session_and_under_the_id_of_the_request(client: Client):
    answer = dataclasses.replace(client, path="/mcp/ada/s/s1").call("kb__search", {"query": "x"})
    record = models.CallRecord.objects.get()
    assert (record.agent, record.session, record.tool, record.outcome) == ("ada", "s1", "kb__search", "ok")
    assert record.request_id == answer.headers["x-request-id"]


def test_a_tool_that_says_what_it_answers_has_its_answer_as_structure(client: Client):
    belts.import_(
        SETUP, {"tools": [{"key": "kb__search", "plugin": "kb", "output_schema": {"type": "object"}}]}
    )
    models.Tool.objects.filter(key="kb__search").update(input_schema=sample_plugins.QUERY)
    result = client.call("kb__search", {"query": "x"}).result
    assert result["structuredContent"] == {"results": ["x"]}
    assert text(result) == '{"results":["x"]}'


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("kb__fail", {}, "tool-failed", "The index is being rebuilt: try again in an hour."),
        ("kb__crash", {}, "tool-failed", "kb__crash failed. The error was logged for an operator."),
        ("kb__search", {"query": 7}, "invalid-arguments", "The arguments do not fit kb__search: query:"),
    ],
)
def test_what_goes_wrong_is_a_result_that_a_model_reads(
    client: Client, tool: str, arguments: Any, code: str, said: str
):
    result = client.call(tool, arguments).result
    assert result["isError"] is True
    assert text(result).startswith(said)
    assert result["_meta"][results.REFUSAL]["code"] == code


def test_no_call_reaches_a_plugin_that_was_stopped_a_moment_ago_through_either_door(
    client: Client, token: str
):
    web = Browser(headers={"Authorization": f"Bearer {token}"})

    def over_http() -> Any:
        asked = {"tool": "kb__search", "arguments": {"query": "x"}}
        return web.post("/api/v1/agents/ada/calls", asked, "application/json").json()

    assert client.call("kb__search", {"query": "x"}).result["isError"] is over_http()["is_error"] is False
    stopped = blocking.set_blocked(SETUP, "plugin", "kb", True, was=False)
    assert stopped.agents["ada"] == len(AGENT["tools"])
    assert client.call("kb__search", {"query": "x"}).error["code"] == protocol.INVALID_PARAMS
    assert over_http()["code"] == "tool-denied"
    assert "kb__search" not in [tool["name"] for tool in client.ask("tools/list").result["tools"]]
    undo.undo(SETUP, stopped.entry or 0)
    assert client.call("kb__search", {"query": "x"}).result["isError"] is over_http()["is_error"] is False


def test_unknown_hidden_and_denied_are_told_alike(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    told = {}
    for name in ("kb__nothing", "kb__odd", "kb__plain", "kb__who", "load_tools", "list_toolkits"):
        answer = client.call(name, {})
        assert answer.error["code"] == protocol.INVALID_PARAMS
        assert answer.status == (400 if client.version == NEW else 200)
        told[answer.error["message"].replace(name, "X")] = name
    assert len(told) == 1


def test_a_tool_that_was_taken_away_a_moment_ago_is_refused(client: Client):
    assert client.call("kb__search", {"query": "x"}).result["isError"] is False
    switches.override(SETUP.replace(confirm=True), "ada", "kb__search", False)
    assert client.call("kb__search", {"query": "x"}).error["code"] == protocol.INVALID_PARAMS


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": "kb__search", "arguments": [1]}])
def test_a_call_names_a_tool_and_gives_an_object(client: Client, params: Any):
    assert client.ask("tools/call", params).error["code"] == protocol.INVALID_PARAMS


# Through call_tool


def test_a_search_hands_out_schemas_and_says_how_to_call(client: Client):
    result = client.call("search_tools", {"query": "plain"}).result
    assert '"tool":"kb__plain"' in text(result)
    assert '"input_schema":{' in text(result)
    assert "call_tool" in text(result)
    assert "load_tools" not in text(result)


def test_naming_a_tool_loads_it_for_that_one_call(client: Client):
    result = client.call("call_tool", {"tool": "kb__plain"}).result
    assert result["isError"] is False
    record = models.CallRecord.objects.latest("id")
    assert (record.tool, record.plugin, record.outcome) == ("kb__plain", "kb", "ok")
    assert client.call("kb__plain", {}).error["code"] == protocol.INVALID_PARAMS
    assert models.AgentSession.objects.count() == 0


def test_a_tool_that_is_named_gets_the_options_that_loading_it_would_bring(client: Client):
    belts.import_(
        SETUP,
        {
            "toolkits": [{"key": "more", "members": [{"tool": "kb__who", "options": {"depth": 2}}]}],
            "agents": [{**AGENT, "tools": ["kb__search"]}],
        },
    )
    assert '"options":{"depth":2}' in text(client.call("call_tool", {"tool": "kb__who"}).result)


def test_what_is_active_may_be_named_too(client: Client):
    result = client.call("call_tool", {"tool": "kb__search", "arguments": {"query": "x"}}).result
    assert text(result) == '{"results":["x"]}'


def test_call_tool_widens_no_denial(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", False)
    told = {}
    for name in ("kb__plain", "kb__odd", "kb__nothing", "search_tools", "call_tool", "load_tools"):
        answer = client.call("call_tool", {"tool": name, "arguments": {}})
        assert answer.error["code"] == protocol.INVALID_PARAMS, name
        told[answer.error["message"].replace(name, "X")] = name
    assert len(told) == 1


def test_arguments_that_do_not_fit_are_told_with_their_place(client: Client):
    inner = client.call("call_tool", {"tool": "kb__search", "arguments": {"query": 7}}).result
    outer = client.call("call_tool", {"name": "kb__search"}).result
    assert (inner["isError"], outer["isError"]) == (True, True)
    assert "query" in text(inner)
    assert "call_tool" in text(outer)


# A list that grows


def test_what_a_session_loads_is_in_its_next_list_and_announced_with_the_result(
    token: str, endpoint: Endpoint
):
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    client = Client(endpoint=endpoint, token=token, path="/mcp/ada/s/s1")
    assert "kb__plain" not in client.names()
    told = client.call("load_tools", {"toolkit": "more"}).messages()
    assert [one.get("method") for one in told] == [protocol.LIST_CHANGED, None]
    assert '"status":"loaded"' in told[1]["result"]["content"][0]["text"]
    assert "added: kb__plain" in told[1]["result"]["content"][1]["text"]
    assert "kb__plain" in client.names()
    assert "kb__plain" not in dataclasses.replace(client, path="/mcp/ada/s/s2").names()
    assert client.call("kb__plain", {}).result["isError"] is False
    assert client.call("call_tool", {"tool": "kb__plain"}).error["code"] == protocol.INVALID_PARAMS


def test_a_client_that_takes_no_events_is_told_in_the_result_alone(token: str, endpoint: Endpoint):
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    client = Client(endpoint=endpoint, token=token, path="/mcp/ada/s/s1")
    client.names()
    result = client.call("load_tools", {"toolkit": "more"}, accept="application/json").result
    assert "added: kb__plain" in result["content"][1]["text"]


# News for who does not listen


def test_a_client_that_does_not_listen_is_told_with_its_next_result_once(client: Client):
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", True)
    first, second = (client.call("kb__search", {"query": "x"}).result for _ in range(2))
    assert first["content"][0]["text"] == '{"results":["x"]}'
    assert "added: kb__plain; removed: kb__who" in first["content"][1]["text"]
    assert len(second["content"]) == 1


def test_a_client_that_was_refused_is_told_too(client: Client):
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    assert "removed: kb__who" in client.call("kb__who", {}).error["message"]


def test_a_client_that_listed_again_or_never_is_told_nothing(client: Client):
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    assert len(client.call("kb__search", {"query": "x"}).result["content"]) == 1
    client.names()
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", None)
    client.names()
    assert len(client.call("kb__search", {"query": "x"}).result["content"]) == 1


def test_a_session_s_id_says_it_where_another_process_answered_the_list(old: Client):
    session = old.ask("initialize", {"protocolVersion": old.version}).headers["mcp-session-id"]
    switches.override(SETUP.replace(confirm=True), "ada", "kb__who", False)
    elsewhere = dataclasses.replace(old, endpoint=Endpoint(old.endpoint.answers), session=session)
    result = elsewhere.call("kb__search", {"query": "x"}).result
    assert result["content"][1]["text"] == "The tools that you may call have changed. List them again."


# Progress, and going away


def test_progress_is_told_ahead_of_the_result(client: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> list[Any]:
        tool = progressing(monkeypatch)
        async with client.endpoint.serving():
            exchange = client.endpoint.exchange(calling(client))
            _, headers = await exchange.begun()
            told = [await exchange.message(), await exchange.message()]
            tool.go_on.set()
            return [headers["content-type"], *told, await exchange.message(), await exchange.rest()]

    kind, first, second, last, rest = run(main)
    assert kind == "text/event-stream"
    assert first["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": "t1", "progress": 1, "total": 3, "message": "reading"}
    assert second["params"] == {"progressToken": "t1", "progress": 2.5}
    assert (last["id"], last["result"]["content"][0]["text"], rest) == (1, "done", b"")


def test_nobody_is_told_of_progress_who_did_not_ask_or_cannot_hear(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    for request in (
        client.request("tools/call", {"name": "kb__search"}),
        dataclasses.replace(
            calling(client), headers={**calling(client).headers, "accept": "application/json"}
        ),
    ):

        async def main(request: Request = request) -> Any:
            tool = progressing(monkeypatch)
            tool.go_on.set()
            return await client.endpoint.asend(request)

        assert text(run(main).result) == "done"


def test_a_call_that_takes_long_says_that_it_is_still_at_work(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tool_calls, "PING", 0.01)

    async def main() -> tuple[dict[str, str], Any]:
        tool = progressing(monkeypatch)
        exchange = client.endpoint.exchange(client.request("tools/call", {"name": "kb__search"}))
        sign = await exchange.event()
        tool.go_on.set()
        return sign, await exchange.message()

    sign, last = run(main)
    assert sign == {"": "still at work"}
    assert last["result"]["content"][0]["text"] == "done"


def test_the_second_era_takes_a_call_back_by_going_away(
    token: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    client = Client(endpoint=endpoint, token=token, version=NEW)

    async def main() -> bool:
        tool = progressing(monkeypatch)
        exchange = client.endpoint.exchange(calling(client))
        await tool.begun.wait()
        exchange.leave()
        await exchange.task
        return tool.was_cancelled

    assert run(main)


def test_the_first_era_goes_away_without_taking_anything_back(old: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> bool:
        tool = progressing(monkeypatch)
        exchange = old.endpoint.exchange(calling(old))
        await tool.begun.wait()
        exchange.leave()
        await asyncio.sleep(0.05)
        tool.go_on.set()
        await exchange.task
        return tool.was_cancelled

    assert not run(main)


def test_a_token_that_is_revoked_while_its_call_waits_opens_the_call_no_more(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    async def waiting(*about: Any, may_call: Callable[[], object], **more: Any) -> NoReturn:
        await sync_to_async(may_call)()
        prefix = api_tokens.prefix(client.token)
        await sync_to_async(tokens.revoke)(SETUP, prefix)
        await sync_to_async(may_call)()
        raise AssertionError("it may still call")

    monkeypatch.setattr(calls, "arun", waiting)

    assert client.call("kb__search", {"query": "x"}).status == 401


def test_a_call_that_is_taken_back_ends_its_tool_and_is_recorded(token: str, endpoint: Endpoint):
    client = Client(endpoint=endpoint, token=token, version=NEW)
    sample_plugins.BEGUN.clear()
    sample_plugins.CANCELLED.clear()

    async def main() -> None:
        exchange = client.endpoint.exchange(client.request("tools/call", {"name": "kb__hang"}))
        await asyncio.to_thread(sample_plugins.BEGUN.wait, 20)
        exchange.leave()
        await exchange.task

    run(main)
    assert sample_plugins.CANCELLED.wait(20)
    assert models.CallRecord.objects.get().outcome == "cancelled"
