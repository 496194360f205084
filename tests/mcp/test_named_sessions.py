"""Tests that what a client loads stays loaded only in the session that its requests name."""

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
    """Store nothing: each test installs what it needs."""


@pytest.fixture
def new(token: str, endpoint: Endpoint) -> Client:
    return Client(endpoint=endpoint, token=token, version=NEW)


def call(client: Client, tool: str, arguments: Any = None, **params: Any) -> Any:
    return client.ask("tools/call", {"name": tool, "arguments": arguments or {}, **params})


def is_loaded(client: Client, **params: Any) -> bool:
    """Return whether the toolkit is loaded in the session, so that its tool can be called by name."""
    answer = call(client, "kb__plain", **params)
    assert answer.result["isError"] is answer.is_unknown
    return not answer.is_unknown


def test_a_session_named_in_meta_keeps_loaded_toolkits(new: Client) -> None:
    assert not is_loaded(new, **IN_META)
    assert '"status":"loaded"' in text(call(new, "call_tool", LOAD, **IN_META).result)
    assert is_loaded(new, **IN_META)
    assert not is_loaded(new)
    assert not is_loaded(new, _meta={named_sessions.SESSION: "chat-2"})
    (row,) = models.AgentSession.objects.all()
    assert row.key == "chat-1"


def test_a_session_named_in_the_header_keeps_loaded_toolkits(new: Client) -> None:
    named = dataclasses.replace(new, session="chat-1")
    call(named, "call_tool", LOAD)
    assert is_loaded(named)
    assert is_loaded(new, **IN_META)
    assert not is_loaded(dataclasses.replace(new, session="chat-2"))


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_session_named_in_the_address_keeps_loaded_toolkits(
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


def test_a_loaded_toolkit_is_listed_and_can_be_unloaded(new: Client) -> None:
    call(new, "call_tool", LOAD, **IN_META)
    listed = call(new, "call_tool", {"tool": "list_toolkits"}, **IN_META).result
    assert '"loaded":true' in text(listed)
    call(new, "call_tool", {**LOAD, "tool": "unload_tools"}, **IN_META)
    assert not is_loaded(new, **IN_META)


def test_lists_do_not_depend_on_the_session_named_in_a_request(new: Client) -> None:
    before = new.names()
    result = call(new, "call_tool", LOAD, **IN_META).result
    assert len(result["content"]) == 1
    listed = new.ask("tools/list", IN_META).result["tools"]
    assert [tool["name"] for tool in listed] == before == dataclasses.replace(new, session="chat-1").names()


def test_the_policy_includes_the_toolkits_loaded_in_the_session(new: Client) -> None:
    belts.import_(SETUP, {"toolkits": [{**MORE, "policy": "Ask for more."}]})
    call(new, "call_tool", LOAD, **IN_META)
    read = {"uri": "toolbelt://policy"}
    assert "Ask for more." in new.ask("resources/read", {**read, **IN_META}).result["contents"][0]["text"]
    assert "Ask for more." not in new.ask("resources/read", read).result["contents"][0]["text"]


def test_a_search_mentions_loading_only_in_a_named_session(new: Client) -> None:
    result = text(call(new, "search_tools", {"query": "plain"}, **IN_META).result)
    assert '"load":"more"' in result
    assert "load_tools" in result
    assert "load_tools" not in text(call(new, "search_tools", {"query": "plain"}).result)


@pytest.mark.parametrize("toolkit", ["nothing", "secret"])
def test_a_toolkit_that_is_not_allowed_cannot_be_loaded(new: Client, toolkit: str) -> None:
    belts.import_(SETUP, {"toolkits": [{"key": "secret", "members": [{"tool": "kb__odd"}]}]})
    load = {"tool": "load_tools", "arguments": {"toolkit": toolkit}}
    assert '"status":"loaded"' not in text(call(new, "call_tool", load, **IN_META).result)
    assert call(new, "kb__odd", **IN_META).is_unknown


def test_a_denial_applies_to_a_loaded_toolkit(new: Client) -> None:
    call(new, "call_tool", LOAD, **IN_META)
    switches.override(SETUP.replace(confirm=True), "ada", "kb__plain", False)
    assert not is_loaded(new, **IN_META)


def test_a_session_belongs_to_its_agent(new: Client) -> None:
    belts.import_(SETUP, {"agents": [{"key": "bob", "tools": ["kb__search"], "allowed_toolkits": ["more"]}]})
    call(new, "call_tool", LOAD, **IN_META)
    bob = dataclasses.replace(new, token=tokens.issue(SETUP, agent="bob").text, path="/mcp/bob")
    assert not is_loaded(bob, **IN_META)
    assert dataclasses.replace(bob, path="/mcp/ada").ask("tools/list").status == 404


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 7, ["chat-1"], {}])
def test_an_invalid_session_id_in_meta_is_refused(new: Client, name: Any) -> None:
    answer = call(new, "kb__search", {"query": "x"}, _meta={named_sessions.SESSION: name})
    assert answer.status_and_code == (400, protocol.INVALID_PARAMS)
    assert named_sessions.SESSION in answer.error["message"]
    assert not models.CallRecord.objects.exists()


def test_too_long_a_session_id_in_the_header_is_refused(new: Client) -> None:
    answer = call(dataclasses.replace(new, session="x" * 201), "kb__search", {"query": "x"})
    assert answer.status_and_code == (400, protocol.INVALID_PARAMS)
    assert "Mcp-Session-Id" in answer.error["message"]


def test_a_session_that_contradicts_the_address_is_refused(new: Client) -> None:
    at = dataclasses.replace(new, path="/mcp/ada/s/chat-2")
    assert call(at, "call_tool", LOAD, **IN_META).status_and_code == (400, protocol.INVALID_PARAMS)
    same = dataclasses.replace(new, path="/mcp/ada/s/chat-1")
    call(same, "call_tool", LOAD, **IN_META)
    assert is_loaded(same)
    # Earlier revisions send a header in addition to the address.
    assert is_loaded(dataclasses.replace(same, session="chat-2"))


def test_the_first_era_s_own_session_does_not_keep_loaded_toolkits(token: str, endpoint: Endpoint) -> None:
    old = Client(endpoint=endpoint, token=token, version=OLD, session="chat-1")
    assert call(old, "call_tool", LOAD, **IN_META).is_unknown
    assert not models.AgentSession.objects.exists()
