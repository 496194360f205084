"""Tests of importing the servers of an MCP client's file, without storing or showing its secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.control.servers.imported_files import FILES, everything_stored
from tests.web import dashboard
from toolbelt.control.servers import upstream_servers
from toolbelt.runtime.upstream import server_lists

pytestmark = pytest.mark.django_db
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
TEXT = json.dumps(
    {
        "mcpServers": {
            "issues": {"url": "https://issues.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
            "wiki": {"url": "https://wiki.example/mcp"},
            "local": {"command": "npx", "args": ["local"], "env": {"API_TOKEN": SECRET}},
            "sleeping": {"url": "https://off.example/mcp", "disabled": True},
            "odd": {},
        }
    }
)


@pytest.fixture(autouse=True)
def allowed(settings: Any) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ("ISSUES_TOKEN",)


@pytest.fixture(autouse=True)
def refreshed_names(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Contact no server, and return the list of names that would have been refreshed."""
    refreshed: list[Any] = []
    monkeypatch.setattr(server_lists, "refresh_soon", lambda names, record: refreshed.extend(names))
    return refreshed


def preview(browser: Client, **given: Any) -> Any:
    return browser.post("/plugins/add/file/check/", given)


def names() -> list[str]:
    return [server.plugin.name for server in upstream_servers.servers()]


def test_the_preview_lists_the_files_servers_without_secrets(plugin_manager: Client) -> None:
    response = preview(plugin_manager, text=TEXT)
    page, html = response.context["page"], response.content.decode()
    assert [server.name for server, _ in page.ready] == ["issues", "wiki", "sleeping"]
    assert [server.name for server, _ in page.elsewhere] == ["local"]
    assert (page.preview.off, [server.source for server in page.refused]) == (("sleeping",), ["odd"])
    assert "It is off in the file, and arrives off." in html
    assert page.variables == ("ISSUES_TOKEN",)
    assert "mcp import FILE --only local" in html
    assert SECRET not in html
    assert names() == []


def test_the_preview_names_what_is_rejected_and_what_is_not_taken_over(plugin_manager: Client) -> None:
    servers = {
        "docs": {"url": "https://docs.example/mcp", "excludeTools": ["drop"], "oauth": {"a": SECRET}},
        "local": {"command": "npx", "cwd": "~", "trust": True, "includeTools": ["read"]},
        "odd": {"url": "x", "alias": SECRET},
        "数据库": {"url": "https://wiki.example/mcp"},
    }
    html = preview(
        plugin_manager, text=json.dumps({"inputs": SECRET, "mcpServers": servers})
    ).content.decode()

    for told in (
        "1 tool arrives rejected: drop.",
        "All tools but 1 arrive rejected. Not rejected: read.",
        "Title: 数据库",
        *(f"<code>{key}</code>" for key in ("oauth", "trust", "alias", "inputs")),
    ):
        assert told in html
    assert SECRET not in html


def test_the_lists_of_tools_are_stored_from_the_preview(plugin_manager: Client) -> None:
    server = {
        "url": "https://docs.example/mcp",
        "excludeTools": ["drop"],
        "includeTools": ["a"],
        "enabled": False,
    }
    page = preview(plugin_manager, text=json.dumps({"mcpServers": {"docs": server}})).context["page"]

    response = plugin_manager.post("/plugins/add/file/save/", {"servers": page.servers, "name": ["docs"]})

    assert response.status_code == 303
    [stored] = upstream_servers.servers()
    assert (stored.plugin.reject_tools, stored.plugin.reject_all_but) == (("drop",), ("a",))
    assert not stored.plugin.active


def test_a_server_with_disallowed_variables_must_be_added_in_a_shell(
    plugin_manager: Client, settings: Any
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ()
    response = preview(plugin_manager, text=TEXT)
    assert [server.name for server, _ in response.context["page"].elsewhere] == ["issues", "local"]
    assert "add it to TOOLBELT_WEB_VARIABLES" in dashboard.text(response)


def test_the_chosen_servers_are_added_and_refreshed(
    plugin_manager: Client, refreshed_names: list[Any]
) -> None:
    servers = preview(plugin_manager, text=TEXT).context["page"].servers
    response = plugin_manager.post("/plugins/add/file/save/", {"servers": servers, "name": ["issues"]})
    assert response.status_code == 303, response.context["page"].problems
    assert names() == refreshed_names == ["issues"]
    assert SECRET not in everything_stored()
    [server] = upstream_servers.servers()
    assert json.loads(server.plugin.upstream)["headers"] == {"Authorization": "Bearer ${ISSUES_TOKEN}"}
    assert "1 server added" in dashboard.text(plugin_manager.get(response["Location"]))


@pytest.mark.parametrize("file", sorted(path.name for path in FILES.iterdir()))
def test_files_of_every_supported_client_are_read(plugin_manager: Client, file: str) -> None:
    upload = SimpleUploadedFile(file, (FILES / file).read_bytes())
    page = preview(plugin_manager, file=upload).context["page"]
    assert page.problems == ()
    assert page.ready or page.elsewhere


def test_pasted_toml_is_read(plugin_manager: Client) -> None:
    text = '[mcp_servers.docs]\nurl = "https://docs.example/mcp"\n'
    assert [server.name for server, _ in preview(plugin_manager, text=text).context["page"].ready] == ["docs"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"text": ""}, "Choose a file, or paste its text."),
        ({"text": '{"mcpServers": '}, "line 1"),
        ({"text": "{}"}, "The file has no servers"),
        ({"file": SimpleUploadedFile("x.json", b"\x81\x8d")}, "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_rejected_with_the_reason(
    plugin_manager: Client, given: dict[str, Any], problem: str
) -> None:
    response = preview(plugin_manager, **given)
    assert response.status_code == 422
    assert problem in dashboard.text(response)


def test_all_chosen_servers_or_none_are_added(plugin_manager: Client) -> None:
    servers = {
        "wiki": {"upstream": {"url": "https://wiki.example/mcp"}},
        "bad": {"upstream": {"url": "ftp://x"}},
    }
    response = plugin_manager.post(
        "/plugins/add/file/save/", {"servers": json.dumps(servers), "name": ["wiki", "bad"]}
    )
    assert response.status_code == 422
    assert "Nothing was imported" in dashboard.text(response)
    assert names() == []


@pytest.mark.parametrize(
    "connection", [{"command": "sh"}, {"command": ["sh"]}, {"url": "https://x.example/", "command": ["sh"]}]
)
def test_a_command_cannot_be_added_through_a_forged_form(
    plugin_manager: Client, connection: dict[str, Any]
) -> None:
    servers = {"local": {"upstream": connection}}
    response = plugin_manager.post(
        "/plugins/add/file/save/", {"servers": json.dumps(servers), "name": ["local"]}
    )
    assert response.status_code in (409, 422)
    assert names() == []


@pytest.mark.parametrize(
    "servers",
    [
        "",
        "[]",
        "7",
        '{"a": 1}',
        "{",
        '{"a": {"upstream": 1}}',
        '{"a": {"upstream": {"url": "https://a.example/"}, "trusted": true}}',
        '{"a": {"upstream": {"url": "https://a.example/"}, "status": "ready"}}',
        '{"a": {"upstream": {"url": "https://a.example/"}, "active": "x"}}',
        '{"a": {"upstream": {"url": "https://a.example/"}, "reject_tools": [1]}}',
        '{"a": {"upstream": {"url": "https://a.example/"}, "reject_tools": 1}}',
    ],
)
def test_a_tampered_preview_is_refused(plugin_manager: Client, servers: str) -> None:
    response = plugin_manager.post("/plugins/add/file/save/", {"servers": servers, "name": ["a"]})
    assert response.status_code == 422
    assert names() == []


def test_importing_servers_requires_permission_to_add_plugins(viewer: Client) -> None:
    assert viewer.get("/plugins/add/file/").status_code == 403
    assert preview(viewer, text=TEXT).status_code == 403
    assert viewer.post("/plugins/add/file/save/", {}).status_code == 403
