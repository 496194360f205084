"""Tests of the page of a plugin."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.plugins.upstream import listing
from tests.web import acting, servers
from toolbelt import models
from toolbelt.control.servers import client_plugins, upstream_servers
from toolbelt.store import snapshots
from toolbelt.web.plugins import listing as plugins

pytestmark = pytest.mark.django_db

FILES = "/plugins/files/"


@pytest.fixture
def changed(belt: None) -> None:
    """Let a server change behind our back, and an agent have an override for a tool that got another name."""
    servers.changed()
    models.ToolOverride.objects.create(
        agent=factories.agent("dee"), tool=models.Tool.objects.get(key="files__list"), on=False
    )


def look(browser: Client, name: str = "files", **said: Any) -> Any:
    """Open the page; give what it shows."""
    return browser.get(f"/plugins/{name}/", said).context["page"]


def facts(browser: Client, name: str = "files") -> dict[str, str]:
    """Return what the page says of the plugin and its connection, by its labels."""
    html = re.sub(r"<(?!/?d[td]>).*?>", "", acting.text(browser.get(f"/plugins/{name}/")))
    return dict(re.findall("<dt>(.*?)</dt> *<dd>(.*?) ?</dd>", html))


def test_how_a_server_is_reached_is_for_those_who_may_see_plugins(
    keeper: Client, viewer: Client, changed: None
) -> None:
    assert look(viewer).reached is None
    assert "files.example" not in viewer.get(FILES).content.decode()
    told = facts(keeper)
    assert (told["URL"], told["Header"]) == (
        "https://files.example/mcp",
        "Authorization: Bearer ${MCP_FILES}",
    )
    assert told["Idle time"] == "A connection is closed after 900 s without a call"
    assert (told["Namespace"], told["Listed"]) == ("files__", "4 tools")


def test_what_a_server_said_of_itself_and_what_of_its_list_did_not_fit_is_told(
    keeper: Client, viewer: Client, belt: None
) -> None:
    servers.add()
    broken = listing.tool("bro\u202eken")
    servers.answer(servers.READ, broken, server="files 1.0", stderr="\x1b[31mno cache\x1b[0m")
    page = look(keeper)
    told = facts(keeper)
    assert (told["Server name"], told["Protocol"]) == ("files 1.0", "MCP 2025-06-18")
    assert "Its name holds characters that cannot be seen" in page.problems[0]
    assert page.stderr is not None
    assert look(viewer).stderr is None


def test_a_server_that_runs_as_a_command_is_changed_on_the_machine(keeper: Client, belt: None) -> None:
    reached = {"command": "uvx", "args": ["mcp-files", "a b"], "env": {"KEY": "${FILES_KEY}"}}
    upstream_servers.add(servers.SHELL.actor, "files", reached)
    page = look(keeper)
    assert page.reached.form is None
    told = facts(keeper)
    assert (told["Command"], told["Arguments"], told["Variable"]) == (
        "uvx",
        "mcp-files &#x27;a b&#x27;",
        "KEY=${FILES_KEY}",
    )
    assert told["Last request"] == "never"
    line = ".venv/bin/python manage.py mcp add files '--env=KEY=${FILES_KEY}' --command uvx mcp-files 'a b'"
    assert page.reached.command == line


def test_the_url_and_the_headers_of_a_server_are_changed_by_a_form(keeper: Client, belt: None) -> None:
    servers.add(reached={"timeout": 5})
    was = look(keeper).reached.form["was"].value()
    fields = {"url": "https://other.example/mcp", "headers": "X-Team: blue", "was": was}
    answer = keeper.post(f"{FILES}connection/", fields)
    assert answer.status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.url, server.headers, server.timeout) == (
        "https://other.example/mcp",
        {"X-Team": "blue"},
        5,
    )
    again = keeper.post(f"{FILES}connection/", {**fields, "url": "https://third.example/mcp"})
    assert again.status_code == 409
    assert "Another operator" in again.content.decode()
    assert upstream_servers.servers()[0].connection.url == "https://other.example/mcp"


def test_who_shares_connections_is_changed_by_the_form(keeper: Client, belt: None) -> None:
    servers.add(reached={"timeout": 5, "idle": 60})
    form = look(keeper).reached.form
    assert [form[name].value() for name in ("sharing", "idle", "max_connections")] == [None, 60, None]
    fields = {"url": "https://files.example/mcp", "was": form["was"].value(), "sharing": "agent", "idle": ""}
    assert keeper.post(f"{FILES}connection/", {**fields, "max_connections": "3"}).status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.sharing, server.idle, server.max_connections, server.timeout) == ("agent", 900, 3, 5)
    assert facts(keeper)["Connections"] == "One for each agent; at most 3 in each process"


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"sharing": "everyone"}, "sharing", "Select a valid choice"),
        ({"url": "gopher://files.example"}, "url", "begins with https://"),
        ({"headers": "X-Key: ${SECRET_KEY}"}, "url", "TOOLBELT_WEB_VARIABLES"),
        ({"headers": "Authorization: Basic abc"}, "headers", "write ${NAME} instead"),
        ({"was": "nonsense"}, "was", "valid JSON"),
    ],
)
def test_a_place_that_a_server_cannot_be_at_is_refused_at_the_field(
    keeper: Client, belt: None, fields: dict[str, str], field: str, said: str
) -> None:
    servers.add()
    was = look(keeper).reached.form["was"].value()
    answer = keeper.post(f"{FILES}connection/", {"url": "https://files.example/mcp", "was": was, **fields})
    assert answer.status_code == 422
    assert said in " ".join(answer.context["page"].reached.form.errors[field])


def test_a_plugin_of_the_agents_own_program_says_when_it_was_declared_and_holds_its_tools(
    keeper: Client, belt: None
) -> None:
    assert facts(keeper, "github")["Last declared"] == "never"
    tools = [{"name": "merge", "description": "Merge."}]
    client_plugins.declare(servers.SHELL.actor, "github", tools)
    told = facts(keeper, "github")
    assert (told["Declared"], told["May declare"]) == ("1 tool", "operators")
    assert told["Last declared"].startswith("just now, by ")
    assert b"runs in the agent&#x27;s program" in keeper.get("/plugins/github/").content.replace(
        b"'", b"&#x27;"
    )


def test_each_tool_says_who_has_it_or_why_nobody_has(keeper: Client, changed: None) -> None:
    tools = {
        line.tool.key.rpartition("__")[2]: (line.state, line.word, line.users) for line in look(keeper).tools
    }
    assert tools["write"] == ("unavailable", "No agent", "changed since it was approved")
    assert tools["help"] == ("unavailable", "No agent", "new, and not reviewed yet")
    assert tools["read"] == ("dormant", "No agent", "")
    github = {line.tool.key.rpartition("__")[2]: line.users for line in look(keeper, "github").tools}
    assert github["issue_read"] == "ada, bob"


def test_of_hundreds_of_tools_the_first_are_listed(keeper: Client, belt: None) -> None:
    servers.add()
    servers.answer(*[listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(130)])
    page = look(keeper)
    assert (len(page.tools), page.more_tools) == (100, 30)
    assert len(look(keeper, all="yes").tools) == 130


def test_a_refresh_that_is_over_says_how_many_tools_await_review(keeper: Client, belt: None) -> None:
    servers.add()
    servers.answer(servers.READ)
    html = keeper.get(FILES, headers={**acting.HTMX, "HX-Target": "refresh-progress"}).content.decode()
    assert '<a class="look" href="/review/?plugin=files"><strong>1</strong> to review</a>' in html
    assert "<html" not in html


def test_an_answer_that_comes_while_a_page_is_read_is_told_with_what_came_of_it_or_not_yet(
    keeper: Client, belt: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.add()
    real = snapshots.catalog

    def then_the_server_answers() -> Any:
        monkeypatch.setattr(snapshots, "catalog", real)
        read = real()
        servers.answer(servers.READ)
        return read

    asked = plugins.stamp(timezone.now() - dt.timedelta(seconds=1))
    monkeypatch.setattr(snapshots, "catalog", then_the_server_answers)
    page = look(keeper, asked=asked)
    assert (page.refresh.under_way, page.plugin.waiting) == (True, 0)
    page = look(keeper, asked=asked)
    assert (page.refresh.under_way, page.plugin.waiting) == (False, 1)


def test_a_plugin_that_is_not_there_is_a_404(viewer: Client, belt: None) -> None:
    assert viewer.get("/plugins/nobody/").status_code == 404


def test_it_asks_the_database_the_same_few_questions_however_many_tools_there_are(
    keeper: Client, changed: None
) -> None:
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW)
    look(keeper)
    of_two = acting.queries(lambda: look(keeper))
    more = [listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(50)]
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW, *more)
    look(keeper)
    assert look(keeper).plugin.waiting == 52
    assert acting.queries(lambda: look(keeper)) == of_two <= 22
