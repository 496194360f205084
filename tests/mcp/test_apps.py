"""Tests that a client that shows the screens of servers (MCP Apps) can do with them what it can do without Toolbelt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp import offering
from tests.mcp.conftest import NEW, Client
from tests.mcp.offering import cleared as cleared
from tests.mcp.offering import client as client
from tests.plugins.upstream import listing, scripting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.mcp import protocol

pytestmark = pytest.mark.django_db(transaction=True)

SCREEN = "ui://pdf/view.html"
HOST = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
SHOW = listing.tool("show.pdf", "Shows a document.", _meta={"ui": {"resourceUri": SCREEN}})
PAGE = listing.tool(
    "read_page", "Reads a page.", _meta={"ui": {"resourceUri": SCREEN, "visibility": ["app"]}}
)
RESOURCES = {
    "resources/list": {
        "resources": [{"uri": SCREEN, "name": SCREEN, "mimeType": "text/html;profile=mcp-app"}]
    },
    "resources/read": {"contents": [{"uri": SCREEN, "mimeType": "text/html;profile=mcp-app", "text": "<p>"}]},
}


def connect(script: scripting.Script, **options: Any) -> None:
    """Connect the server, and grant ada all of it."""
    script.lists(SHOW, PAGE)
    script.offers(RESOURCES)
    upstream_servers.add(SETUP, "pdf", script.connection, trusted=True, **options)
    offering.refresh("pdf")
    members = list(models.Tool.objects.filter(plugin__name="pdf").values_list("key", flat=True))
    belts.import_(SETUP, {"toolkits": [{"key": "documents", "members": members}]})
    switches.flip(SETUP.replace(confirm=True), "ada", "documents", True)


@pytest.fixture
def script(cleared: None, tmp_path: Any) -> scripting.Script:
    return scripting.Script(tmp_path)


def as_host(client: Client, method: str, params: Mapping[str, Any] | None = None) -> Any:
    """Send a request as a client that shows screens, in its era's way, and return the result."""
    if client.version == NEW:
        return client.ask(method, {**(params or {}), "_meta": {protocol.CAPABILITIES: HOST}}).result
    session = client.ask("initialize", {"protocolVersion": client.version, "capabilities": HOST}).headers
    return client.ask(method, params, mcp_session_id=session["mcp-session-id"]).result


def listed(result: Any) -> dict[str, Any]:
    return {tool["name"]: tool for tool in result["tools"]}


def test_a_tool_for_apps_only_is_listed_for_clients_that_show_screens(
    client: Client, script: scripting.Script
) -> None:
    connect(script)
    assert listed(client.ask("tools/list").result).keys() == {"pdf__show_pdf"}
    tools = listed(as_host(client, "tools/list"))
    assert [*tools] == ["pdf__read_page", "pdf__show_pdf"]
    assert tools["pdf__read_page"]["_meta"]["ui"] == {"resourceUri": SCREEN, "visibility": ["app"]}


@pytest.mark.parametrize("namespace", ["pdf", ""])
def test_a_screen_is_shown_and_calls_its_tools_by_their_own_names(
    client: Client, script: scripting.Script, namespace: str
) -> None:
    connect(script, namespace=namespace)
    show = next(tool for name, tool in listed(as_host(client, "tools/list")).items() if "show" in name)
    content = as_host(client, "resources/read", {"uri": show["_meta"]["ui"]["resourceUri"]})
    assert content["contents"][0]["text"] == "<p>"
    for name in ("read_page", "show.pdf"):
        result = as_host(client, "tools/call", {"name": name, "arguments": {"page": 3}})
        assert (result["isError"], result["content"][0]["text"]) == (False, '{"page": 3}')
    prefix = f"{namespace}__" if namespace else ""
    recorded = models.CallRecord.objects.order_by("id").values_list("tool", "outcome")
    assert [*recorded][-2:] == [(f"{prefix}read_page", "ok"), (f"{prefix}show_pdf", "ok")]


def test_a_denied_tool_is_denied_by_its_servers_name_too(client: Client, script: scripting.Script) -> None:
    connect(script)
    switches.override(SETUP.replace(confirm=True), "ada", "pdf__read_page", False)
    assert client.call("read_page").is_unknown
    assert client.call("pdf__read_page").is_unknown
    assert [*listed(as_host(client, "tools/list"))] == ["pdf__show_pdf"]
    assert models.CallRecord.objects.latest("id").tool == "pdf__read_page"


def test_models_can_neither_find_nor_dispatch_a_tool_for_apps_only(
    client: Client, script: scripting.Script
) -> None:
    connect(script)
    belts.import_(SETUP, {"tools": [{"key": "more"}], "toolkits": [{"key": "extra", "members": ["more"]}]})
    belts.import_(SETUP, {"agents": [{"key": "ada", "allowed_toolkits": ["extra", "documents"]}]})
    assert client.call("call_tool", {"tool": "pdf__read_page"}).is_unknown
    assert client.call("call_tool", {"tool": "read_page"}).is_unknown
    assert "read_page" not in str(client.call("search_tools", {"query": "read a page"}).json())
