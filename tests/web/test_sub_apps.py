"""Tests of the list of sub-apps, a sub-app's page, and its editor."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.web import dashboard, editor_forms
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.core import risks

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

CHAT, EDIT, SAVE = "/sub-apps/chat/", "/sub-apps/chat/edit/", "/sub-apps/chat/save/"
NEW, CREATE = "/new/sub-app/", "/new/sub-app/save/"


@pytest.fixture(autouse=True)
def chat(belt: None) -> None:
    """Store the sub-app chat, which binds two tools to ada."""
    tools = {tool.key: tool for tool in models.Tool.objects.all()}
    factories.sub_app(
        "chat",
        tools=(tools["papers"], tools["github__merge"]),
        agents=(models.Agent.objects.get(key="ada"),),
    )


@pytest.fixture
def editor(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user with all permissions for sub-apps."""
    codenames = [f"{act}_subapp" for act in ("add", "change", "delete")]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=codenames))
    return operator


def open_page(browser: Client, address: str = CHAT) -> Any:
    return browser.get(address).context["page"]


def test_the_list_shows_bound_tools_agents_and_denied_tools(viewer: Client, operator: Client) -> None:
    line = open_page(viewer, "/sub-apps/").sub_apps[0]
    assert (line.sub_app.key, line.tools, line.sub_app.agents, line.off) == ("chat", 2, ("ada",), 0)
    dashboard.override(operator, "papers", "false", "unset")
    assert "1 of 2 not on" in dashboard.text(viewer.get("/sub-apps/"))


def test_the_page_shows_each_agents_tools_and_missing_tools(viewer: Client, operator: Client) -> None:
    dashboard.override(operator, "papers", "false", "unset")
    page = open_page(viewer)
    assert [(tool.key, risks.of(tool)) for tool, _, _ in page.tools] == [
        ("papers", "read-only"),
        ("github__merge", "destructive"),
    ]
    ada = page.agents[0]
    assert (ada.key, ada.word) == ("ada", "1 of 2 on")
    assert [tool for tool, _ in ada.off] == ["papers"]
    html = dashboard.text(viewer.get(CHAT))
    assert "view only" in html
    assert "/edit/" not in html


def test_rows_are_moved_added_and_removed_before_saving(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, act="down-tools-0")
    assert [row["key"] for row in response.context["page"].form.rows] == ["github__merge", "papers"]
    response = editor_forms.resubmit(editor, response, SAVE, act="drop-tools-0")
    response = editor_forms.resubmit(
        editor, response, SAVE, act="add-tools-0", add_tools="clock__now, shell", htmx=True
    )
    assert "<html" not in dashboard.text(response)
    assert [row["key"] for row in response.context["page"].form.rows] == ["papers", "clock__now", "shell"]
    assert not models.AuditEntry.objects.exists()
    response = editor_forms.resubmit(editor, response, SAVE, agents=["ada", "bob"])
    reached = response.context["page"].consequences
    assert {one.agent.key: (one.effect.added, one.effect.removed) for one, _ in reached} == {
        "ada": ((), ("github__merge",)),
        "bob": (("clock__now", "papers", "shell"), ()),
    }
    assert editor_forms.resubmit(editor, response, SAVE).status_code == 303
    assert entries.read("sub_app", "chat") == {
        "key": "chat",
        "tool_names": ["papers", "clock__now", "shell"],
        "agents": ["ada", "bob"],
    }
    assert models.AuditEntry.objects.count() == 1


def test_errors_are_shown_at_their_row(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, add_tools="paper")
    form = response.context["page"].form
    assert response.status_code == 422
    assert [row["problem"] for row in form.rows] == [
        "",
        "",
        "There is no tool named 'paper'. Did you mean papers?",
    ]
    assert form.errors == {"__all__": ["Fix the fields marked below."]}
    assert editor.post("/sub-apps/nothing/save/").status_code == 404


def test_a_sub_app_is_created_and_removed(editor: Client) -> None:
    assert editor_forms.submit(editor, NEW, CREATE).context["page"].form.problems["key"] == "Enter a key."
    response = editor_forms.submit(editor, NEW, CREATE, key="room", add_tools="papers", agents="bob")
    assert [one.agent.key for one, _ in response.context["page"].consequences] == ["bob"]
    assert editor_forms.resubmit(editor, response, CREATE).headers["Location"] == "/sub-apps/room/"
    response = editor_forms.submit(editor, "/sub-apps/room/", "/sub-apps/room/remove/")
    assert response.context["page"].title == "Remove sub-app room?"
    response = editor_forms.resubmit(editor, response, "/sub-apps/room/remove/")
    assert response.headers["Location"] == "/sub-apps/"
    page = open_page(editor, "/sub-apps/")
    assert [line.sub_app.key for line in page.sub_apps] == ["chat"]
    assert page.notice.undo == dashboard.latest_entry().pk


def test_an_empty_list_shows_an_empty_state(viewer: Client) -> None:
    models.SubApp.objects.all().delete()
    assert "No sub-apps yet" in dashboard.text(viewer.get("/sub-apps/"))


def test_query_counts_do_not_grow_with_sub_apps_and_tools(viewer: Client, more_tools: Any) -> None:
    def cost() -> list[int]:
        for address in ("/sub-apps/", CHAT):
            viewer.get(address)
        return [dashboard.count_queries(partial(viewer.get, address)) for address in ("/sub-apps/", CHAT)]

    few = cost()
    more_tools(30)
    for number in range(8):
        factories.sub_app(f"more_{number}", tools=tuple(models.Tool.objects.all()[:20]))
    assert cost() == few
    assert max(few) <= 12


def test_a_budget_error_is_not_attached_to_the_key_field(editor: Client) -> None:
    models.Agent.objects.filter(key="ada").update(max_tools=0, on_exceed="refuse")
    factories.tool("another")
    typed = {"key": "more", "tool": "another", "agents": "ada"}
    problems = editor.post(CREATE, typed).context["page"].form.problems
    assert "The budget of ada is 0 tools" in problems[""]
    assert "key" not in problems
