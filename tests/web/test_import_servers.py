"""Tests of importing the servers of an MCP client's file, without storing or showing its secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.control.servers.test_client_files import FILES, everything_stored
from tests.web import acting
from toolbelt.control.servers import upstream_servers
from toolbelt.runtime import upstream_listing

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
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Contact no server, and return the list of names that would have been refreshed."""
    told: list[Any] = []
    monkeypatch.setattr(upstream_listing, "refresh_soon", lambda names, record: told.extend(names))
    return told


def preview(browser: Client, **given: Any) -> Any:
    return browser.post("/plugins/add/file/check/", given)


def names() -> list[str]:
    return [server.plugin.name for server in upstream_servers.servers()]


def test_the_preview_lists_the_files_servers_without_secrets(keeper: Client) -> None:
    response = preview(keeper, text=TEXT)
    page, html = response.context["page"], response.content.decode()
    assert [server.name for server, _ in page.ready] == ["issues", "wiki"]
    assert [server.name for server, _ in page.elsewhere] == ["local"]
    assert (page.preview.off, [server.source for server in page.refused]) == (("sleeping",), ["odd"])
    assert page.variables == ("ISSUES_TOKEN",)
    assert "mcp import FILE --only local" in html
    assert SECRET not in html
    assert names() == []


def test_a_server_with_disallowed_variables_must_be_added_in_a_shell(keeper: Client, settings: Any) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ()
    response = preview(keeper, text=TEXT)
    assert [server.name for server, _ in response.context["page"].elsewhere] == ["issues", "local"]
    assert "add it to TOOLBELT_WEB_VARIABLES" in acting.text(response)


def test_the_chosen_servers_are_added_and_refreshed(keeper: Client, asked: list[Any]) -> None:
    servers = preview(keeper, text=TEXT).context["page"].servers
    response = keeper.post("/plugins/add/file/save/", {"servers": servers, "name": ["issues"]})
    assert response.status_code == 303, response.context["page"].problems
    assert names() == asked == ["issues"]
    assert SECRET not in everything_stored()
    [server] = upstream_servers.servers()
    assert json.loads(server.plugin.upstream)["headers"] == {"Authorization": "Bearer ${ISSUES_TOKEN}"}
    assert "1 server added" in acting.text(keeper.get(response["Location"]))


@pytest.mark.parametrize("file", sorted(path.name for path in FILES.iterdir()))
def test_files_of_every_supported_client_are_read(keeper: Client, file: str) -> None:
    upload = SimpleUploadedFile(file, (FILES / file).read_bytes())
    page = preview(keeper, file=upload).context["page"]
    assert page.problems == ()
    assert page.ready or page.elsewhere


def test_pasted_toml_is_read(keeper: Client) -> None:
    text = '[mcp_servers.docs]\nurl = "https://docs.example/mcp"\n'
    assert [server.name for server, _ in preview(keeper, text=text).context["page"].ready] == ["docs"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"text": ""}, "Choose a file, or paste its text."),
        ({"text": '{"mcpServers": '}, "line 1"),
        ({"text": "{}"}, "The file has no servers"),
        ({"file": SimpleUploadedFile("x.json", b"\xff\xfe\x00")}, "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_rejected_with_the_reason(
    keeper: Client, given: dict[str, Any], problem: str
) -> None:
    response = preview(keeper, **given)
    assert response.status_code == 422
    assert problem in acting.text(response)


def test_all_chosen_servers_or_none_are_added(keeper: Client) -> None:
    servers = {"wiki": {"url": "https://wiki.example/mcp"}, "bad": {"url": "ftp://x"}}
    response = keeper.post(
        "/plugins/add/file/save/", {"servers": json.dumps(servers), "name": ["wiki", "bad"]}
    )
    assert response.status_code == 422
    assert "Nothing was imported" in acting.text(response)
    assert names() == []


@pytest.mark.parametrize(
    "servers", [{"local": {"command": ["sh"]}}, {"local": {"url": "https://x.example/", "command": ["sh"]}}]
)
def test_a_command_cannot_be_added_through_a_forged_form(keeper: Client, servers: dict[str, Any]) -> None:
    response = keeper.post("/plugins/add/file/save/", {"servers": json.dumps(servers), "name": ["local"]})
    assert response.status_code in (409, 422)
    assert names() == []


@pytest.mark.parametrize("servers", ["", "[]", "7", '{"a": 1}', "{"])
def test_a_tampered_preview_is_refused(keeper: Client, servers: str) -> None:
    response = keeper.post("/plugins/add/file/save/", {"servers": servers, "name": ["a"]})
    assert response.status_code == 422
    assert names() == []


def test_importing_servers_requires_permission_to_add_plugins(viewer: Client) -> None:
    assert viewer.get("/plugins/add/file/").status_code == 403
    assert preview(viewer, text=TEXT).status_code == 403
    assert viewer.post("/plugins/add/file/save/", {}).status_code == 403
