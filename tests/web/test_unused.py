"""Tests of the list of tools that are on but unused, and of turning them off there."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt import models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def open_page(browser: Client, **query: Any) -> Any:
    return browser.get("/calls/", {"view": "unused", **query}).context["page"]


def test_unused_tools_are_listed_by_descending_token_cost(call_viewer: Client) -> None:
    models.Tool.objects.filter(key="github__issue_write").update(tokens=900)
    models.Tool.objects.filter(key="github__issue_read").update(tokens=100)
    factories.call("clock__now")
    factories.call("shell", agent="bob")
    unused = open_page(call_viewer).unused
    listed = [(idle.tool.key, idle.agents) for idle, _ in unused.tools]
    assert listed[:2] == [("github__issue_write", ("ada", "bob")), ("github__issue_read", ("ada", "bob"))]
    assert ("shell", ("ada",)) in listed
    assert "clock__now" not in [tool for tool, _ in listed]


def test_an_agents_unused_tool_is_turned_off_from_the_list(call_viewer: Client) -> None:
    html = dashboard.text(call_viewer.get("/calls/?view=unused&agent=ada"))
    assert 'action="/agents/ada/overrides/shell/"' in html
    tools = open_page(call_viewer, agent="ada").unused.tools
    unused = {idle.tool.key: was for idle, settings in tools for _, was in settings}
    assert (unused["shell"], unused["clock__now"]) == ("unset", "true")
    response = dashboard.override(
        call_viewer, "shell", "false", unused["shell"], htmx=False, next="/calls/?view=unused&agent=ada"
    )
    assert response.headers["Location"] == "/calls/?view=unused&agent=ada"
    html = dashboard.text(call_viewer.get("/calls/?view=unused&agent=ada"))
    assert "shell is off for ada." in html
    assert 'action="/agents/ada/overrides/shell/"' not in html


def test_an_unused_tool_of_several_agents_is_turned_off_for_each_agent(call_viewer: Client) -> None:
    tools = {idle.tool.key: settings for idle, settings in open_page(call_viewer).unused.tools}
    write = "github__issue_write"
    assert tools[write] == [("ada", "unset"), ("bob", "unset")]
    html = dashboard.text(call_viewer.get("/calls/?view=unused"))
    for agent in ("ada", "bob"):
        assert f'action="/agents/{agent}/overrides/github__issue_write/"' in html
    assert '<input type="hidden" name="next" value="/calls/?view=unused">' in html
    before = models.AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    response = dashboard.override(
        call_viewer, write, "false", "unset", htmx=False, next="/calls/?view=unused"
    )
    assert response.headers["Location"] == "/calls/?view=unused"
    (entry,) = models.AuditEntry.objects.filter(pk__gt=before)
    assert (entry.action, entry.subject_key, entry.key) == ("override.set", "ada", write)
    assert f'action="/audit/{entry.pk}/undo/"' in dashboard.text(call_viewer.get("/calls/?view=unused"))
    dashboard.post(call_viewer, f"/audit/{entry.pk}/undo/", htmx=False, next="/calls/")
    assert write not in dashboard.stored_agent().overrides


def test_unused_tools_are_paginated(call_viewer: Client) -> None:
    models.Agent.objects.filter(key="ada").update(loadout="full")
    for number in range(40):
        tool = factories.tool(f"idle_{number:02}", tokens=100)
        models.ToolOverride.objects.create(agent=models.Agent.objects.get(key="ada"), tool=tool, on=True)
    unused = open_page(call_viewer, agent="ada").unused
    assert len(unused.tools) == 30
    assert unused.pages.older_url == "/calls/?view=unused&agent=ada&offset=30"
    rest = open_page(call_viewer, agent="ada", offset="30").unused
    assert (rest.pages.older_url, rest.pages.newer_url) == ("", "/calls/?view=unused&agent=ada")
    assert len(rest.tools) > 10


def test_no_tools_are_listed_if_all_were_called(call_viewer: Client) -> None:
    for idle, _ in open_page(call_viewer, agent="ada").unused.tools:
        factories.call(idle.tool.key)
    page = open_page(call_viewer, agent="ada")
    assert page.matches == "0 tools on but unused"
    assert "No unused tools" in dashboard.text(call_viewer.get("/calls/?view=unused&agent=ada"))


def test_turning_off_unused_tools_requires_permission(viewer: Client) -> None:
    rosa = auth.User.objects.get(username="rosa")
    rosa.user_permissions.add(auth.Permission.objects.get(codename="view_callrecord"))
    assert "Turn off" not in dashboard.text(viewer.get("/calls/?view=unused&agent=ada"))
