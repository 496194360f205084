"""Tests of the list of plugins and upstream servers, its controls, and adding servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard, servers
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core.imported import importing
from toolbelt.runtime import plugins as runtime
from toolbelt.runtime.upstream import process_connections, server_lists
from toolbelt.store import snapshots
from toolbelt.testing import OPERATOR
from toolbelt.web.kit import words

pytestmark = pytest.mark.django_db


@pytest.fixture
def requested_refreshes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Contact no server, and return the names and record function of each requested refresh."""
    refreshes: list[Any] = []
    monkeypatch.setattr(
        server_lists, "refresh_soon", lambda names, record: refreshes.append(([*names], record))
    )
    return refreshes


def open_page(browser: Client, **query: Any) -> Any:
    """Return the view model of the list."""
    return browser.get("/plugins/", query).context["page"]


def line(page: Any, name: str) -> Any:
    return next(plugin for plugin in page.plugins if plugin.name == name)


def set_control(browser: Client, name: str, control: str, on: str, was: str, **fields: Any) -> Any:
    address = f"/plugins/{name}/switch/"
    return dashboard.post(browser, address, control=control, on=on, was=was, **fields)


def plugin(name: str) -> Any:
    return snapshots.catalog().plugins[name]


def test_each_row_shows_kind_state_and_agents_of_the_plugin(plugin_manager: Client, belt: None) -> None:
    servers.add(title="Files")
    servers.answer(servers.READ, servers.WRITE)
    page = open_page(plugin_manager)
    assert [plugin.name for plugin in page.plugins] == ["github", "acme.clock", "files"]
    github, clock, files = page.plugins
    assert (github.kind, github.runs, github.state.word, github.tools) == ("client", False, "On", 3)
    assert github.reach == "3 on for 2 agents"
    assert (clock.title, clock.namespace, clock.reach) == ("Clock", "clock", "1 on for 1 agent")
    assert (files.kind, files.runs, files.waiting, files.reach) == (
        "HTTP",
        True,
        2,
        "on for no agent",
    )
    assert words.since(files.seen) == "just now"
    assert page.matches == "3 plugins, 6 tools, 2 to review"


def test_pages_agree_on_the_number_of_tools_and_count_retired_tools(
    plugin_manager: Client, belt: None
) -> None:
    servers.changed()
    stored = snapshots.catalog()
    total, without_plugin = len(stored.tools), sum(not tool.plugin for tool in stored.tools.values())
    page = open_page(plugin_manager)
    assert page.matches.startswith(f"3 plugins, {total - without_plugin} tools (1 retired)")
    assert line(page, "files").retired == "and 1 retired"
    assert f"{total} tools in the catalog" in plugin_manager.get("/").context["page"].summary
    assert plugin_manager.get("/tools/").context["page"].matches.startswith(f"{total} tools")


def test_an_operators_setting_takes_precedence_over_the_connection_state(
    plugin_manager: Client, belt: None
) -> None:
    servers.add()
    assert line(open_page(plugin_manager), "files").state.about == "tools not listed yet"
    servers.answer(error="connection refused\u202e by <b>files.example</b>")
    state = line(open_page(plugin_manager), "files").state
    assert (state.shape, state.word) == ("unavailable", "Failed")
    assert state.error == "connection refused[U+202E] by <b>files.example</b>"
    assert "&lt;b&gt;files.example" in plugin_manager.get("/plugins/").content.decode()
    entries.change(OPERATOR, "plugin", "files", {"active": False})
    assert line(open_page(plugin_manager), "files").state.word == "Off"
    entries.change(OPERATOR, "plugin", "files", {"blocked": True})
    assert line(open_page(plugin_manager), "files").state.word == "Blocked"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "TIME"}, ["acme.clock"]),
        ({"q": "files"}, ["files"]),
        ({"show": "waiting"}, ["files"]),
        ({"show": "failed"}, ["github"]),
        ({"show": "off"}, ["acme.clock"]),
        ({"show": "nonsense", "q": "github"}, ["github"]),
        ({"asked": "yesterday"}, ["github", "acme.clock", "files"]),
    ],
)
def test_the_list_is_filtered_by_query_parameters(
    plugin_manager: Client, belt: None, query: dict[str, str], expected: list[str]
) -> None:
    models.Plugin.objects.filter(name="acme.clock").update(active=False, description="Tells the time.")
    models.Plugin.objects.filter(name="github").update(status="failed")
    servers.add()
    servers.answer(servers.READ)
    assert [plugin.name for plugin in open_page(plugin_manager, **query).plugins] == expected


def test_an_htmx_filter_request_returns_only_the_rows_and_count(plugin_manager: Client, belt: None) -> None:
    html = dashboard.text(plugin_manager.get("/plugins/", {"q": "clock"}, headers=dashboard.HTMX))
    assert html.startswith('<div id="plugins" tabindex="-1">')
    assert '<p id="matches" hx-swap-oob="innerHTML">1 plugin, 1 tool</p>' in html


def test_an_empty_list_shows_how_to_add_a_server(plugin_manager: Client) -> None:
    html = plugin_manager.get("/plugins/").content.decode()
    assert "No plugins yet" in html
    assert "manage.py mcp add" in html


def test_installed_but_unlisted_plugins_are_shown_with_their_file_entry(plugin_manager: Client) -> None:
    installed = {plugin.name: plugin for plugin in open_page(plugin_manager).installed}
    memory, html = installed["memory"], plugin_manager.get("/plugins/").content.decode()
    assert f"{memory.distribution}, {memory.module}:{memory.attribute}</p>" in html
    assert "<code>- id: memory</code>" in html


def test_a_running_plugin_outside_the_catalog_is_shown_with_the_command_that_adds_it(
    plugin_manager: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ghost = SimpleNamespace(name="ghost", state="failed", source="here:ghost", error="It\nbroke.")
    loaded = SimpleNamespace(available=(), registry=SimpleNamespace(list_plugins=lambda: [ghost]))
    monkeypatch.setattr(runtime, "loaded", lambda: loaded)
    html = dashboard.text(plugin_manager.get("/plugins/"))
    assert "Running, but not in the catalog" in html
    assert '<h3>ghost</h3> <p class="quiet small">here:ghost</p> <p class="note danger">It broke.</p>' in html
    assert "manage.py plugins sync</code>" in html


@pytest.mark.parametrize("htmx", [True, False])
def test_turning_a_plugin_off_removes_its_tools_and_can_be_undone(
    plugin_manager: Client, belt: None, htmx: bool
) -> None:
    response = set_control(plugin_manager, "github", "active", "false", "true", htmx=htmx)
    assert response.status_code == (200 if htmx else 303)
    assert plugin("github").active is False
    page = response.context["page"] if htmx else open_page(plugin_manager)
    assert page.notice.text == "GitHub `github` is off for everyone."
    assert line(open_page(plugin_manager), "github").reach == "on for no agent"
    dashboard.post(plugin_manager, f"/audit/{page.notice.undo}/undo/", htmx=False)
    assert plugin("github").active is True


@pytest.mark.parametrize(
    ("control", "on", "was", "message"),
    [
        ("blocked", "true", "false", "GitHub `github` is blocked for everyone."),
        ("trusted", "true", "false", "GitHub `github` is trusted."),
        ("active", "true", "true", "No changes: GitHub `github` is on already."),
    ],
)
def test_each_control_reports_its_result(
    plugin_manager: Client, belt: None, control: str, on: str, was: str, message: str
) -> None:
    assert set_control(plugin_manager, "github", control, on, was).context["page"].notice.text == message
    assert getattr(plugin("github"), control) is True


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("true", "Approved descriptions of Files `files` are kept."),
        ("false", "Descriptions of Files `files` follow the server again."),
    ],
)
def test_descriptions_of_a_server_are_kept_and_followed_again(
    plugin_manager: Client, on: str, message: str
) -> None:
    was = {"true": "false", "false": "true"}[on]
    servers.add(title="Files")
    entries.change(OPERATOR, "plugin", "files", {"keep_descriptions": was == "true" or None})
    response = set_control(plugin_manager, "files", "keep_descriptions", on, was, place="one")
    assert response.context["page"].notice.text == message
    assert plugin("files").keep_descriptions is (on == "true")
    assert 'id="plugin-files:keep_descriptions"' in response.content.decode()


def test_only_a_server_keeps_descriptions(plugin_manager: Client, belt: None) -> None:
    assert set_control(plugin_manager, "github", "keep_descriptions", "true", "false").status_code == 422
    assert "Keep descriptions" not in plugin_manager.get("/plugins/github/").content.decode()


def test_blocking_reports_the_affected_agents_and_can_be_undone(plugin_manager: Client, belt: None) -> None:
    notice = set_control(plugin_manager, "github", "blocked", "true", "false").context["page"].notice
    assert notice.detail == "2 agents can no longer use it (2 had it on)"
    assert line(open_page(plugin_manager), "github").reach == "on for no agent"
    dashboard.post(plugin_manager, f"/audit/{notice.undo}/undo/", htmx=False)
    assert plugin("github").blocked is False
    again = set_control(plugin_manager, "github", "blocked", "true", "false", htmx=False)
    assert again.status_code == 303
    assert open_page(plugin_manager).notice.detail == notice.detail, "also without htmx"


def test_a_stale_switch_is_refused_and_shows_the_current_state(plugin_manager: Client, belt: None) -> None:
    entries.change(OPERATOR, "plugin", "github", {"active": False})
    response = set_control(plugin_manager, "github", "active", "false", "true")
    assert response.status_code == 409
    assert response.context["page"].notice.tone == "refused"
    assert 'name="was" value="false"' in response.content.decode()


def test_an_invalid_control_or_plugin_is_rejected(plugin_manager: Client, belt: None) -> None:
    assert set_control(plugin_manager, "github", "position", "true", "false").status_code == 422
    assert set_control(plugin_manager, "nobody", "active", "false", "true").status_code == 404


def test_a_switch_in_the_list_updates_only_the_parts_shown_there(plugin_manager: Client, belt: None) -> None:
    html = set_control(plugin_manager, "github", "active", "false", "true", place="list").content.decode()
    assert 'id="plugin-github:active"' in html
    assert 'id="tools"' not in html
    assert 'id="plugin-github:trusted"' not in html
    assert (
        'id="tools"'
        in set_control(plugin_manager, "github", "active", "true", "false", place="one").content.decode()
    )


def test_a_viewer_sees_states_as_text_without_controls(viewer: Client, belt: None) -> None:
    html = dashboard.text(viewer.get("/plugins/"))
    assert "3 on for 2 agents" in html
    assert 'role="switch"' not in html
    assert "Block for everyone" not in html


def test_a_refresh_lists_servers_that_are_on_and_shows_progress(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any]
) -> None:
    servers.add()
    servers.add("quiet")
    entries.change(OPERATOR, "plugin", "quiet", {"active": False})
    response = dashboard.post(plugin_manager, "/refresh/", htmx=False)
    assert (response.status_code, requested_refreshes[0][0]) == (303, ["files"])
    shown = plugin_manager.get(response.headers["Location"])
    page = shown.context["page"]
    assert "Refreshing files…" in dashboard.text(shown)
    assert [plugin.is_refreshing for plugin in page.plugins] == [False, False, True, False]
    requested_refreshes[0][1]("files", importing.ServerListing(tools=(servers.READ,)))
    page = plugin_manager.get(response.headers["Location"]).context["page"]
    assert not line(page, "files").is_refreshing
    assert snapshots.catalog().tools["files__read"].seen is False


def test_a_finished_refresh_is_reported_and_polling_stops(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any]
) -> None:
    servers.add()
    response = dashboard.post(plugin_manager, "/plugins/files/refresh/", htmx=False, next="/plugins/")
    assert response.headers["Location"].startswith("/plugins/?asked=")
    assert response.headers["Location"].endswith("&of=files")
    polled = {**dashboard.HTMX, "HX-Target": "refresh-progress"}
    html = plugin_manager.get(response.headers["Location"], headers=polled).content.decode()
    assert 'hx-trigger="every 1s"' in html
    requested_refreshes[0][1]("files", importing.ServerListing(tools=(servers.READ, servers.WRITE)))
    response = plugin_manager.get(response.headers["Location"], headers=polled)
    assert "1 server responded. 2 tools await review." in dashboard.text(response)
    assert "every 1s" not in response.content.decode()


def test_a_server_that_runs_as_a_command_is_marked_as_such(plugin_manager: Client, belt: None) -> None:
    servers.add(reached={"url": None, "headers": None, "command": "mcp-server-time"})
    assert line(open_page(plugin_manager), "files").kind == "command (stdio)"


def test_a_failed_server_is_named_in_the_refresh_result(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any]
) -> None:
    servers.add()
    response = dashboard.post(plugin_manager, "/plugins/files/refresh/", htmx=False)
    requested_refreshes[0][1]("files", importing.ServerListing(error="connection refused"))
    html = dashboard.text(plugin_manager.get(response.headers["Location"]))
    assert "files did not respond: connection refused." in html
    assert "0 servers" not in html


def test_a_code_plugin_that_no_process_runs_is_marked_as_not_running(
    plugin_manager: Client, operator: Client, belt: None
) -> None:
    tools = [key for key in snapshots.catalog().tools if key.startswith("github__")]
    models.Plugin.objects.filter(name="github").update(in_code=True, not_running=tools)
    state = line(open_page(plugin_manager), "github").state
    assert (state.shape, state.word) == ("unavailable", "Not running")
    assert f"no running process can run {len(tools)} of its tools" in state.about
    sections = dashboard.sections(operator.get(dashboard.ACCESS).context["page"]).values()
    marked = [
        section.key
        for section in sections
        if section.switch and "not running" in [mark.word for mark in section.marks]
    ]
    assert marked == ["issues", "releases"]


def test_refreshing_a_failed_code_plugin_resets_its_status(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any]
) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed", error="no such file")
    dashboard.post(plugin_manager, "/plugins/github/refresh/", htmx=False)
    assert (plugin("github").status, requested_refreshes) == ("ready", [])
    assert dashboard.post(plugin_manager, "/plugins/nobody/refresh/", htmx=False).status_code == 404


def server_fields(**fields: str) -> dict[str, str]:
    given = {
        "name": "files",
        "url": "https://files.example/mcp",
        "headers": "Authorization: Bearer ${MCP_FILES}",
    }
    return {**given, **fields}


def test_an_environment_variable_must_be_allowed_by_the_installation(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any]
) -> None:
    response = plugin_manager.post("/plugins/add/save/", server_fields())
    assert response.status_code == 422
    assert "TOOLBELT_WEB_VARIABLES" in response.content.decode()


def test_an_added_server_is_refreshed_immediately(
    plugin_manager: Client, belt: None, requested_refreshes: list[Any], settings: Any
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    response = plugin_manager.post("/plugins/add/save/", server_fields(title="Files"))
    assert response.status_code == 303
    assert response.headers["Location"].startswith("/plugins/files/?asked=")
    server = configured.servers()[0]
    assert (server.plugin.namespace, server.connection.headers) == (
        "files",
        {"Authorization": "Bearer ${MCP_FILES}"},
    )
    assert requested_refreshes[0][0] == ["files"]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"name": "no name"}, "name", "is not a name"),
        ({"name": "add"}, "name", "choose another name"),
        ({"name": "github"}, "__all__", "already exists"),
        ({"url": "ftp://files.example"}, "url", "begins with https://"),
        ({"url": "https://169.254.169.254/"}, "url", "a cloud platform's own address"),
        ({"headers": "no colon"}, "headers", "is not a header"),
        ({"headers": "Authorization: Bearer abc"}, "headers", "write ${NAME} instead"),
        ({"headers": "X-Key: ${SECRET_KEY}"}, "__all__", "TOOLBELT_WEB_VARIABLES"),
        ({"namespace": "a__b"}, "namespace", "contains '__'"),
        ({"url": ""}, "url", "required"),
    ],
)
def test_an_invalid_server_is_rejected_at_its_field_and_input_is_kept(
    plugin_manager: Client,
    belt: None,
    requested_refreshes: list[Any],
    fields: dict[str, str],
    field: str,
    message: str,
) -> None:
    response = plugin_manager.post("/plugins/add/save/", server_fields(**fields))
    form = response.context["page"].form
    assert response.status_code == 422
    assert message in " ".join(form.errors[field])
    assert form["url"].value() == server_fields(**fields)["url"]
    assert (configured.servers(), requested_refreshes) == ([], [])


def test_the_form_shows_the_command_that_adds_a_command_server(plugin_manager: Client) -> None:
    assert "manage.py mcp add files --command" in plugin_manager.get("/plugins/add/").content.decode()


def test_the_menu_counts_tools_to_review(viewer: Client, belt: None) -> None:
    assert "to review</span>" not in dashboard.text(viewer.get("/agents/"))
    servers.add()
    servers.answer(servers.READ, servers.WRITE)
    assert '2<span class="unseen"> to review</span>' in dashboard.text(viewer.get("/agents/"))
    servers.approve()
    servers.answer(servers.READ, servers.WRITE_NOW)
    assert '1<span class="unseen"> to review</span>' in dashboard.text(viewer.get("/agents/"))
    servers.answer(servers.READ)
    assert "to review</span>" not in dashboard.text(viewer.get("/agents/"))


def test_query_count_does_not_grow_with_the_number_of_plugins(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(servers.READ)
    open_page(plugin_manager)
    of_three = dashboard.count_queries(lambda: open_page(plugin_manager))
    for number in range(6):
        servers.add(f"more{number}")
        servers.answer(servers.READ, servers.WRITE, name=f"more{number}")
        factories.agent(f"agent-{number}")
    open_page(plugin_manager)
    assert len(open_page(plugin_manager).plugins) == 9
    assert dashboard.count_queries(lambda: open_page(plugin_manager)) == of_three <= 16


def test_opening_plugin_pages_contacts_no_server(
    plugin_manager: Client, belt: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_connections, "take", lambda *args: pytest.fail("a page asked a server"))
    servers.add()
    assert plugin_manager.get("/plugins/").status_code == 200
    assert plugin_manager.get("/plugins/files/").status_code == 200
