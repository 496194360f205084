"""Tests of a plugin's page."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.plugins.upstream import listing
from tests.web import dashboard, servers
from toolbelt import models
from toolbelt.control.servers import client_plugins, upstream_servers
from toolbelt.store import snapshots
from toolbelt.web.plugins import listing as plugins

pytestmark = pytest.mark.django_db

FILES = "/plugins/files/"


@pytest.fixture
def changed(belt: None) -> None:
    """Store a server that changed after approval, and an override for one of its renamed tools."""
    servers.changed()
    models.ToolOverride.objects.create(
        agent=factories.agent("dee"), tool=models.Tool.objects.get(key="files__list"), on=False
    )


def open_page(browser: Client, name: str = "files", **query: Any) -> Any:
    """Return the view model of the page."""
    return browser.get(f"/plugins/{name}/", query).context["page"]


def facts(browser: Client, name: str = "files") -> dict[str, str]:
    """Return the facts about the plugin and its connection on the page, by label."""
    html = re.sub(r"<(?!/?d[td]>).*?>", "", dashboard.text(browser.get(f"/plugins/{name}/")))
    return dict(re.findall("<dt>(.*?)</dt> *<dd>(.*?) ?</dd>", html))


def test_connection_details_require_permission_to_view_plugins(
    plugin_manager: Client, viewer: Client, changed: None
) -> None:
    assert open_page(viewer).connection_view is None
    assert "files.example" not in viewer.get(FILES).content.decode()
    details = facts(plugin_manager)
    assert (details["URL"], details["Header"]) == (
        "https://files.example/mcp",
        "Authorization: Bearer ${MCP_FILES}",
    )
    assert details["Idle time"] == "A connection is closed after 900 s without a call"
    assert (details["Namespace"], details["Listed"]) == ("files__", "4 tools")


def test_server_info_and_rejected_tools_are_shown(plugin_manager: Client, viewer: Client, belt: None) -> None:
    servers.add()
    broken = listing.tool("bro\u202eken")
    servers.answer(servers.READ, broken, server="files 1.0", stderr="\x1b[31mno cache\x1b[0m")
    page = open_page(plugin_manager)
    details = facts(plugin_manager)
    assert (details["Server name"], details["Protocol"]) == ("files 1.0", "MCP 2025-06-18")
    assert "Its name contains invisible characters" in page.problems[0]
    assert page.stderr is not None
    assert open_page(viewer).stderr is None


def test_names_that_are_rejected_in_advance_are_shown_until_and_after_they_are_listed(
    viewer: Client, belt: None
) -> None:
    servers.add()
    models.Plugin.objects.update(reject_tools=["write", "rm*"], reject_all_but=["read", "find"])
    servers.answer(servers.READ, servers.WRITE)

    assert [*open_page(viewer).rejections] == [
        ("Rejected when first listed", "write, rm*"),
        ("Rejected when first listed", "all but read, find"),
        ("Not listed yet", "rm*, find"),
    ]
    details = facts(viewer)
    assert details["Rejected when first listed"] == "all but read, find"
    assert details["Not listed yet"] == "rm*, find"


def test_a_command_server_shows_the_shell_command_instead_of_a_form(
    plugin_manager: Client, belt: None
) -> None:
    reached = {"command": "uvx", "args": ["mcp-files", "a b"], "env": {"KEY": "${FILES_KEY}"}}
    upstream_servers.add(servers.SHELL, "files", reached)
    page = open_page(plugin_manager)
    assert page.connection_view.form is None
    details = facts(plugin_manager)
    assert (details["Command"], details["Arguments"], details["Variable"]) == (
        "uvx",
        "mcp-files &#x27;a b&#x27;",
        "KEY=${FILES_KEY}",
    )
    assert details["Last request"] == "never"
    line = ".venv/bin/python manage.py mcp add files --replace '--env=KEY=${FILES_KEY}' --command uvx mcp-files 'a b'"
    assert page.connection_view.command == line
    assert "run it there to change the connection" in plugin_manager.get(FILES).content.decode()


def test_the_form_changes_the_url_and_headers_and_rejects_stale_input(
    plugin_manager: Client, belt: None
) -> None:
    servers.add(reached={"timeout": 5})
    was = open_page(plugin_manager).connection_view.form["was"].value()
    fields = {"url": "https://other.example/mcp", "headers": "X-Team: blue", "was": was}
    response = plugin_manager.post(f"{FILES}connection/", fields)
    assert response.status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.url, server.headers, server.timeout) == (
        "https://other.example/mcp",
        {"X-Team": "blue"},
        5,
    )
    again = plugin_manager.post(f"{FILES}connection/", {**fields, "url": "https://third.example/mcp"})
    assert again.status_code == 409
    assert "You changed the connection in another tab" in again.content.decode()
    assert upstream_servers.servers()[0].connection.url == "https://other.example/mcp"


def test_the_form_changes_connection_sharing(plugin_manager: Client, belt: None) -> None:
    servers.add(reached={"timeout": 5, "idle": 60})
    form = open_page(plugin_manager).connection_view.form
    assert [form[name].value() for name in ("sharing", "idle", "max_connections")] == [None, 60, None]
    fields = {"url": "https://files.example/mcp", "was": form["was"].value(), "sharing": "agent", "idle": ""}
    fields |= {"revision": "2025-11-25", "resource_bytes": "20000000"}
    assert plugin_manager.post(f"{FILES}connection/", {**fields, "max_connections": "3"}).status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.sharing, server.idle, server.max_connections, server.timeout) == ("agent", 900, 3, 5)
    assert (server.revision, server.result_bytes, server.resource_bytes) == ("2025-11-25", 0, 20_000_000)
    assert facts(plugin_manager)["Connections"] == "One for each agent; at most 3 in each process"


@pytest.mark.parametrize(("reached", "is_open"), [({}, False), ({"idle": 60}, True)])
def test_the_limits_of_a_connection_are_folded_while_they_have_their_defaults(
    plugin_manager: Client, belt: None, reached: dict[str, Any], is_open: bool
) -> None:
    servers.add(reached=reached)
    assert open_page(plugin_manager).connection_view.form.shows_limits is is_open


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"sharing": "everyone"}, "sharing", "Select a valid choice"),
        ({"url": "gopher://files.example"}, "url", "begins with https://"),
        ({"headers": "X-Key: ${SECRET_KEY}"}, "url", "TOOLBELT_WEB_VARIABLES"),
        ({"headers": "Authorization: Basic abc"}, "headers", "write ${NAME} instead"),
        ({"was": "nonsense"}, "was", "valid JSON"),
    ],
)
def test_invalid_connection_settings_are_rejected_at_their_field(
    plugin_manager: Client, belt: None, fields: dict[str, str], field: str, message: str
) -> None:
    servers.add()
    was = open_page(plugin_manager).connection_view.form["was"].value()
    response = plugin_manager.post(
        f"{FILES}connection/", {"url": "https://files.example/mcp", "was": was, **fields}
    )
    assert response.status_code == 422
    assert message in " ".join(response.context["page"].connection_view.form.errors[field])


def test_a_client_plugin_shows_its_last_declaration_and_tools(plugin_manager: Client, belt: None) -> None:
    assert facts(plugin_manager, "github")["Last declared"] == "never"
    tools = [{"name": "merge", "description": "Merge."}]
    client_plugins.declare(servers.SHELL, "github", tools)
    details = facts(plugin_manager, "github")
    assert (details["Declared"], details["May declare"]) == ("1 tool", "operators")
    assert details["Last declared"].startswith("just now, by ")
    assert b"runs in the agent&#x27;s program" in plugin_manager.get("/plugins/github/").content.replace(
        b"'", b"&#x27;"
    )


def test_each_tool_shows_its_agents_or_why_there_are_none(plugin_manager: Client, changed: None) -> None:
    row = re.compile(
        r'<wbr>(\w+)</code></h3>.*?data-state="(\w+)">([^<]+)</p>(?: <p class="reason">([^<]+))?'
    )
    tools = {key: found for key, *found in row.findall(dashboard.text(plugin_manager.get(FILES)))}
    assert tools["write"] == ["unavailable", "Unavailable", "changed since it was approved"]
    assert tools["help"] == ["unavailable", "Unavailable", "new, and not reviewed yet"]
    assert tools["read"] == ["dormant", "No agent", ""]
    html = dashboard.text(plugin_manager.get("/plugins/github/"))
    github = {key: found for key, *found in row.findall(html)}
    assert github["issue_read"] == ["active", "2 agents", "ada, bob"]


def test_only_the_first_of_hundreds_of_tools_are_listed(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(*[listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(130)])
    page = open_page(plugin_manager)
    assert (len(page.tools), page.more_tools) == (100, 30)
    assert len(open_page(plugin_manager, all="yes").tools) == 130


def test_a_finished_refresh_shows_how_many_tools_await_review(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(servers.READ)
    html = plugin_manager.get(
        FILES, headers={**dashboard.HTMX, "HX-Target": "refresh-progress"}
    ).content.decode()
    assert '<a class="look" href="/review/?plugin=files"><strong>1</strong> to review</a>' in html
    assert "<html" not in html


def test_a_listing_received_during_a_page_load_is_shown_entirely_or_not_at_all(
    plugin_manager: Client, belt: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.add()
    real = snapshots.catalog

    def catalog_with_concurrent_listing() -> Any:
        monkeypatch.setattr(snapshots, "catalog", real)
        read = real()
        servers.answer(servers.READ)
        return read

    refreshed_at = plugins.stamp(timezone.now() - dt.timedelta(seconds=1))
    monkeypatch.setattr(snapshots, "catalog", catalog_with_concurrent_listing)
    page = open_page(plugin_manager, asked=refreshed_at)
    assert (page.refresh.waiting, page.plugin.waiting) == (["files"], 0)
    page = open_page(plugin_manager, asked=refreshed_at)
    assert (page.refresh.waiting, page.plugin.waiting) == ([], 1)


def test_an_unknown_plugin_is_not_found(viewer: Client, belt: None) -> None:
    assert viewer.get("/plugins/nobody/").status_code == 404


def test_query_count_does_not_grow_with_the_number_of_tools(plugin_manager: Client, changed: None) -> None:
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW)
    open_page(plugin_manager)
    of_two = dashboard.count_queries(lambda: open_page(plugin_manager))
    more = [listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(50)]
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW, *more)
    open_page(plugin_manager)
    assert open_page(plugin_manager).plugin.waiting == 52
    assert dashboard.count_queries(lambda: open_page(plugin_manager)) == of_two <= 24
