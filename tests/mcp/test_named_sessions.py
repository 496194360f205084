"""Tests that what a client loads lasts for the conversation that its requests name, and for no other."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint
from tests.mcp.test_tool_calls import MORE, text
from tests.mcp.test_tool_calls import token as token
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.mcp import named_sessions, protocol

LOAD = {"tool": "load_tools", "arguments": {"toolkit": "more"}}
IN_META = {"_meta": {named_sessions.SESSION: "chat-1"}}


@pytest.fixture
def stored(transactional_db: None) -> None:
    """Each test installs what it needs."""


@pytest.fixture
def new(token: str, endpoint: Endpoint) -> Client:
    return Client(endpoint=endpoint, token=token, version=NEW)


def call(client: Client, tool: str, arguments: Any = None, **params: Any) -> Any:
    return client.ask("tools/call", {"name": tool, "arguments": arguments or {}, **params})


def is_loaded(client: Client, **params: Any) -> bool:
    """Return whether the tool of the toolkit is active in the conversation: it can be called by its own name."""
    answer = call(client, "kb__plain", **params)
    if answer.status == 200:
        return answer.result["isError"] is False
    assert answer.error["code"] == protocol.INVALID_PARAMS
    return False


def test_what_meta_names_keeps_a_load(new: Client) -> None:
    assert not is_loaded(new, **IN_META)
    assert '"status":"loaded"' in text(call(new, "call_tool", LOAD, **IN_META).result)
    assert is_loaded(new, **IN_META)
    assert not is_loaded(new)
    assert not is_loaded(new, _meta={named_sessions.SESSION: "chat-2"})
    (row,) = models.AgentSession.objects.all()
    assert row.key == "chat-1"


def test_what_the_session_s_header_names_keeps_a_load(new: Client) -> None:
    named = dataclasses.replace(new, session="chat-1")
    call(named, "call_tool", LOAD)
    assert is_loaded(named)
    assert is_loaded(new, **IN_META)
    assert not is_loaded(dataclasses.replace(new, session="chat-2"))


@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_the_address_names_keeps_a_load_in_both_eras(
    token: str, endpoint: Endpoint, version: str
) -> None:
    client = Client(endpoint=endpoint, token=token, version=version, path="/mcp/ada/s/chat-1")
    client.names()
    answer = call(client, "call_tool", LOAD)
    result = answer.result if version == NEW else answer.messages()[-1]["result"]
    assert '"status":"loaded"' in result["content"][0]["text"]
    assert "added: kb__plain" in result["content"][1]["text"]
    assert "kb__plain" in client.names()
    assert is_loaded(client)


def test_a_load_can_be_listed_and_taken_back(new: Client) -> None:
    call(new, "call_tool", LOAD, **IN_META)
    listed = call(new, "call_tool", {"tool": "list_toolkits"}, **IN_META).result
    assert '"loaded":true' in text(listed)
    call(new, "call_tool", {**LOAD, "tool": "unload_tools"}, **IN_META)
    assert not is_loaded(new, **IN_META)


def test_lists_never_depend_on_the_conversation_that_a_request_names(new: Client) -> None:
    before = new.names()
    result = call(new, "call_tool", LOAD, **IN_META).result
    assert len(result["content"]) == 1
    listed = new.ask("tools/list", IN_META).result["tools"]
    assert [tool["name"] for tool in listed] == before == dataclasses.replace(new, session="chat-1").names()


def test_the_policy_is_that_of_the_conversation(new: Client) -> None:
    belts.import_(SETUP, {"toolkits": [{**MORE, "policy": "Ask for more."}]})
    call(new, "call_tool", LOAD, **IN_META)
    read = {"uri": "toolbelt://policy"}
    assert "Ask for more." in new.ask("resources/read", {**read, **IN_META}).result["contents"][0]["text"]
    assert "Ask for more." not in new.ask("resources/read", read).result["contents"][0]["text"]


def test_a_search_says_how_to_load_where_a_load_lasts(new: Client) -> None:
    found = text(call(new, "search_tools", {"query": "plain"}, **IN_META).result)
    assert '"load":"more"' in found
    assert "load_tools" in found
    assert "load_tools" not in text(call(new, "search_tools", {"query": "plain"}).result)


@pytest.mark.parametrize("toolkit", ["nothing", "secret"])
def test_a_load_never_widens_what_the_agent_may_load(new: Client, toolkit: str) -> None:
    belts.import_(SETUP, {"toolkits": [{"key": "secret", "members": [{"tool": "kb__odd"}]}]})
    load = {"tool": "load_tools", "arguments": {"toolkit": toolkit}}
    assert '"status":"loaded"' not in text(call(new, "call_tool", load, **IN_META).result)
    assert call(new, "kb__odd", **IN_META).error["code"] == protocol.INVALID_PARAMS


def test_a_denial_counts_for_what_a_conversation_has_loaded(new: Client) -> None:
    call(new, "call_tool", LOAD, **IN_META)
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", False)
    assert not is_loaded(new, **IN_META)


def test_a_conversation_belongs_to_its_agent(new: Client) -> None:
    belts.import_(SETUP, {"agents": [{"key": "bob", "tools": ["kb__search"], "allowed_toolkits": ["more"]}]})
    call(new, "call_tool", LOAD, **IN_META)
    bob = dataclasses.replace(new, token=tokens.issue(SETUP, agent="bob").text, path="/mcp/bob")
    assert not is_loaded(bob, **IN_META)
    assert dataclasses.replace(bob, path="/mcp/ada").ask("tools/list").status == 404


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 7, ["chat-1"], {}])
def test_an_id_that_is_not_valid_is_refused(new: Client, name: Any) -> None:
    answer = call(new, "kb__search", {"query": "x"}, _meta={named_sessions.SESSION: name})
    assert answer.told == (400, protocol.INVALID_PARAMS)
    assert named_sessions.SESSION in answer.error["message"]
    assert not models.CallRecord.objects.exists()


def test_a_header_that_is_too_long_for_an_id_is_refused(new: Client) -> None:
    answer = call(dataclasses.replace(new, session="x" * 201), "kb__search", {"query": "x"})
    assert answer.told == (400, protocol.INVALID_PARAMS)
    assert "Mcp-Session-Id" in answer.error["message"]


def test_a_request_cannot_name_another_session_than_its_address(new: Client) -> None:
    at = dataclasses.replace(new, path="/mcp/ada/s/chat-2")
    assert call(at, "call_tool", LOAD, **IN_META).told == (400, protocol.INVALID_PARAMS)
    same = dataclasses.replace(new, path="/mcp/ada/s/chat-1")
    call(same, "call_tool", LOAD, **IN_META)
    assert is_loaded(same)
    # A header beside the address is what earlier revisions send.
    assert is_loaded(dataclasses.replace(same, session="chat-2"))


def test_in_the_first_era_nothing_depends_on_the_client_s_own_session(token: str, endpoint: Endpoint) -> None:
    old = Client(endpoint=endpoint, token=token, version=OLD, session="chat-1")
    assert call(old, "call_tool", LOAD, **IN_META).error["code"] == protocol.INVALID_PARAMS
    assert not models.AgentSession.objects.exists()
