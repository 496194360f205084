"""Tests that a client lists only the tools granted to its agent: in its revision's form, in pages, and current."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, OLDER, Client, Endpoint
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.config import belts
from toolbelt.core import catalog, schema, tool_versions
from toolbelt.formats import mcp
from toolbelt.mcp import protocol, revisions
from toolbelt.runtime.surfaces import tool_lists

CAPABILITIES = {
    "logging": {},
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
}
DISPATCHED = ["call_tool", "clock", "search_tools"]


def test_the_handshake_returns_the_revision_the_capabilities_and_the_policy(old: Client):
    switches.flip(SETUP, "ada", "reading", True)
    answer = old.ask(
        "initialize",
        {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
        mcp_protocol_version=None,
    )
    result = answer.result
    assert result["protocolVersion"] == OLDER
    assert result["capabilities"] == CAPABILITIES
    assert result["serverInfo"]["name"] == "toolbelt"
    assert "Look before you answer: kb__find, kb__read." in result["instructions"]
    assert answer.headers["mcp-session-id"].isascii()
    assert answer.headers["cache-control"] == "no-store"


def test_discovery_returns_the_revisions_the_capabilities_and_the_policy(new: Client):
    switches.flip(SETUP, "ada", "reading", True)
    result = new.ask("server/discover").result
    assert result["supportedVersions"] == list(revisions.SUPPORTED)
    assert result["capabilities"] == CAPABILITIES
    assert "kb__find, kb__read" in result["instructions"]
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 0)
    assert result["_meta"][protocol.SERVER]["name"] == "toolbelt"
    assert "mcp-session-id" not in new.ask("server/discover").headers


def test_an_agent_without_a_policy_has_no_instructions(old: Client):
    assert "instructions" not in old.ask("initialize", {"protocolVersion": OLD}).result


def test_the_list_contains_the_active_tools_and_the_dispatch_tools(client: Client):
    assert client.names() == DISPATCHED


def test_a_listed_tool_has_its_hints_and_toolkits(client: Client):
    switches.flip(SETUP, "ada", "reading", True)
    tools = {tool["name"]: tool for tool in client.ask("tools/list").result["tools"]}
    assert tools["kb__find"] == {
        "name": "kb__find",
        "description": "Find.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
        "_meta": {"toolbelt/toolkits": ["reading"]},
    }


def test_output_schemas_always_have_the_type_object(client: Client):
    belts.import_(
        SETUP,
        {
            "tools": [
                {
                    "key": "clock",
                    "plugin": "base",
                    "default_on": True,
                    "output_schema": {"type": "object", "required": ["time"]},
                },
                {"key": "kb__find", "plugin": "kb", "output_schema": {"required": ["hits"]}},
            ],
            "agents": [{"key": "ada", "tools": ["clock", "kb__find"]}],
        },
    )
    tools = {tool["name"]: tool for tool in client.ask("tools/list").result["tools"]}
    assert tools["clock"]["outputSchema"] == {"type": "object", "required": ["time"]}
    assert tools["kb__find"]["outputSchema"] == {"type": "object", "required": ["hits"]}


def test_approved_details_of_a_tool_are_listed_along_with_toolbelt_s_metadata(client: Client):
    tool = {
        "key": "kb__find",
        "plugin": "kb",
        "output_schema": {"type": "object"},
        "details": {
            "outputSchema": {"type": "object", "title": "Hits"},
            "icons": [{"src": "https://kb.example/find.png"}],
            "_meta": {"fastmcp": {"wrap_result": True}},
        },
    }
    value = catalog.Tool(key="kb__find", details=schema.canonical(tool["details"]))
    belts.import_(SETUP, {"tools": [tool], "agents": [{"key": "ada", "tools": ["kb__find"]}]})
    (bare,) = [entry for entry in client.ask("tools/list").result["tools"] if entry["name"] == "kb__find"]
    assert (bare["outputSchema"], bare.get("icons")) == ({"type": "object"}, None)
    assert "fastmcp" not in bare.get("_meta", {})

    belts.import_(SETUP, {"tools": [{**tool, "details_approved": tool_versions.details_version(value)}]})

    (whole,) = [entry for entry in client.ask("tools/list").result["tools"] if entry["name"] == "kb__find"]
    assert whole["outputSchema"] == {"type": "object", "title": "Hits"}
    assert whole["icons"] == [{"src": "https://kb.example/find.png"}]
    assert whole["_meta"] == {"fastmcp": {"wrap_result": True}, **bare.get("_meta", {})}


def test_a_list_of_the_second_era_has_caching_hints(new: Client, old: Client):
    result = new.ask("tools/list").result
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 0)
    assert old.ask("tools/list").result.keys() == {"tools"}


@pytest.mark.parametrize("id_", [0, -1, 7, "", "r1", 'say "é"\n'])
def test_a_response_has_the_id_of_its_request(client: Client, id_: Any):
    request = client.request("tools/list", id_=id_)
    assert client.endpoint.send(request, request, request).json()["id"] == id_


def test_cached_and_uncached_lists_have_the_same_bytes(client: Client):
    request = client.request("tools/list")
    cold = client.endpoint.send(request)
    warm = client.endpoint.send(request, request, request)
    by_threads = Endpoint(None).send(request)
    assert cold.body == warm.body == by_threads.body
    assert json.loads(cold.body) == json.loads(schema.canonical(json.loads(cold.body)))


def test_a_cached_list_takes_no_query_of_django_s_connection(client: Client):
    from django.db import connection

    request = client.request("tools/list")
    client.endpoint.send(request, request)
    with CaptureQueriesContext(connection) as queries:
        client.endpoint.send(request, request, request)
    assert len(queries) == 0


def test_a_switch_change_applies_to_the_next_list(client: Client):
    request = client.request("tools/list")
    client.endpoint.send(request, request)
    switches.flip(SETUP, "ada", "reading", True)
    # Everything that the agent may have is listed, so there is nothing to search and call.
    assert client.names() == ["clock", "kb__find", "kb__read"]
    switches.flip(SETUP, "ada", "reading", False)
    assert client.names() == ["clock"]
    switches.flip(SETUP, "ada", "reading", None)
    assert client.names() == ["call_tool", "clock", "search_tools"]


def test_a_switch_change_renders_only_new_tools(client: Client, monkeypatch: pytest.MonkeyPatch):
    rendered: list[str] = []
    render = mcp.render

    def record(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
        rendered.extend(tool["name"] for tool in document["tools"])
        return render(document, mode)

    monkeypatch.setattr(mcp, "render", record)
    assert client.names() == sorted(rendered)
    for on, new in ((True, ["kb__find", "kb__read"]), (False, []), (True, [])):
        rendered.clear()
        switches.flip(SETUP, "ada", "reading", on)
        assert ("kb__find" in client.names()) is on
        assert rendered == new


def test_an_agent_without_loadable_tools_gets_no_dispatch_tools(endpoint: Endpoint):
    from toolbelt.control.people import tokens

    bob = Client(endpoint=endpoint, token=tokens.issue(SETUP, agent="bob").text, path="/mcp/bob")
    assert bob.names() == ["clock", "kb__find", "kb__read"]


def in_list_form() -> None:
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})


def test_only_sessions_of_the_first_era_get_a_growing_list(endpoint: Endpoint, ada: str):
    in_list_form()
    grows = ["clock", "list_toolkits", "load_tools", "search_tools", "unload_tools"]
    names = {
        (version, path): Client(endpoint=endpoint, token=ada, version=version, path=path).names()
        for version in (OLDER, OLD, NEW)
        for path in ("/mcp/ada", "/mcp/ada/s/s1")
    }
    assert names == {
        (OLDER, "/mcp/ada"): DISPATCHED,
        (OLDER, "/mcp/ada/s/s1"): grows,
        (OLD, "/mcp/ada"): DISPATCHED,
        (OLD, "/mcp/ada/s/s1"): grows,
        (NEW, "/mcp/ada"): DISPATCHED,
        (NEW, "/mcp/ada/s/s1"): DISPATCHED,
    }


def test_a_long_list_is_split_into_complete_pages(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tool_lists, "PAGE_SIZE", 2)
    switches.flip(SETUP, "ada", "reading", True)
    first = client.ask("tools/list").result
    second = client.ask("tools/list", {"cursor": first["nextCursor"]}).result
    names = [[tool["name"] for tool in page["tools"]] for page in (first, second)]
    assert names == [["clock", "kb__find"], ["kb__read"]]
    assert "nextCursor" not in second


def test_a_page_starts_after_its_cursor_even_if_that_tool_was_removed(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tool_lists, "PAGE_SIZE", 2)
    switches.flip(SETUP, "ada", "reading", True)
    cursor = client.ask("tools/list").result["nextCursor"]
    switches.override(SETUP, "ada", "kb__find", False)
    rest = client.ask("tools/list", {"cursor": cursor}).result
    assert [tool["name"] for tool in rest["tools"]] == ["kb__read"]


def test_an_invalid_cursor_is_an_invalid_parameter(client: Client):
    answer = client.ask("tools/list", {"cursor": "page 2"})
    assert answer.error["code"] == protocol.INVALID_PARAMS
    assert answer.status == (400 if client.version == NEW else 200)
