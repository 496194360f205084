"""Tests that what is blocked for everyone shows as Blocked on every page, with who blocked it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.catalog import blocking
from toolbelt.store import clock, snapshots

pytestmark = pytest.mark.django_db

WHO = "by sam just now"


@pytest.fixture(autouse=True)
def _blocked_while_something_else_is_wrong(belt: None) -> None:
    """Block a server that has also failed, with tools that also await review."""
    models.Plugin.objects.filter(name="github").update(status="failed", error="It broke.")
    models.Tool.objects.filter(key="github__issue_write").update(seen=False)
    blocking.set_blocked(writing.by("sam", via="api"), "plugin", "github", True, was=False)
    snapshots.forget()


@pytest.mark.parametrize(
    "path",
    [
        "/plugins/",
        "/plugins/github/",
        "/tools/?plugin=github",
        "/tools/github__issue_read/",
        "/toolkits/issues/",
        "/agents/ada/",
    ],
)
def test_a_blocked_server_shows_as_blocked_where_its_tools_are(operator: Client, path: str) -> None:
    html = dashboard.text(operator.get(path))
    assert ">Blocked</" in html
    assert "plugin github is blocked for everyone" in html or "blocked for everyone, by sam" in html
    assert WHO in html
    assert "plugin github has failed" not in html
    assert ">Unavailable</p>" not in html
    assert "No agent</p> <p class" not in html


def test_the_state_filter_finds_the_tools_of_a_blocked_server(operator: Client) -> None:
    def keys(state: str) -> set[str]:
        tools = operator.get("/tools/", {"state": state}).context["page"].tools
        return {line.tool.key for line in tools}

    assert keys("blocked") == {"github__issue_read", "github__issue_write", "github__merge"}
    assert keys("unavailable") == set()


def test_search_results_and_the_switch_of_a_toolkit_say_that_it_is_blocked(operator: Client) -> None:
    found = dashboard.text(operator.get("/search/", {"q": "read an issue"}))
    assert '<code>github__issue_read</code> <span class="mark danger">blocked</span>' in found or (
        'github__issue_read</span> <span class="mark danger">blocked</span>' in found
    )
    assert '<span class="mark danger">blocked</span>' in dashboard.text(
        operator.get("/search/", {"q": "github"})
    )
    for path in ("/agents/ada/", "/matrix/", "/toolkits/issues/"):
        assert "<strong>Blocked</strong>" in dashboard.text(operator.get(path)), path


def test_a_block_without_a_known_author_is_still_blocked(operator: Client) -> None:
    models.Tool.objects.filter(key="shell").update(blocked=True)
    snapshots.forget()
    html = dashboard.text(operator.get("/tools/?q=shell"))
    assert '>Blocked</p> <p class="reason">tool shell is blocked for everyone</p>' in html


def test_who_blocked_what_is_read_only_if_something_is_blocked(operator: Client) -> None:
    operator.get("/tools/")
    with_block = dashboard.count_queries(lambda: operator.get("/tools/"))
    blocking.set_blocked(writing.by("sam", via="api"), "plugin", "github", False, was=True)
    operator.get("/tools/")
    assert dashboard.count_queries(lambda: operator.get("/tools/")) < with_block


@pytest.mark.parametrize(
    ("path", "kind", "name", "form"),
    [
        ("/tools/github__issue_read/block/", "tool", "github__issue_read", {"on": "true", "was": "false"}),
        ("/toolkits/issues/block/", "toolkit", "issues", {"on": "true", "was": "false"}),
        ("/toolkits/issues/block/", "toolkit", "issues", {"from_agent": "ada"}),
        (
            "/plugins/acme.clock/switch/",
            "plugin",
            "acme.clock",
            {"control": "blocked", "on": "true", "was": "false"},
        ),
    ],
)
def test_a_block_may_end(
    plugin_manager: Client, path: str, kind: blocking.Kind, name: str, form: dict[str, Any]
) -> None:
    with clock.stopped(dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)):
        dashboard.post(plugin_manager, path, span="at", at="2031-05-04T16:05", **form)
        (end,) = [at for at in (entry_of(kind, name).block_ends,) if at is not None]
        assert timezone.localtime(end).strftime("%H:%M") == "16:05"
        page = {"tool": f"/tools/{name}/", "toolkit": f"/toolkits/{name}/", "plugin": f"/plugins/{name}/"}[
            kind
        ]
        html = dashboard.text(plugin_manager.get(page))
        assert "blocked for everyone until " in html
        assert 'name="span"' not in html, "what is blocked offers to unblock"
    with clock.stopped(end):
        html = dashboard.text(plugin_manager.get(page))
        assert "blocked for everyone until" not in html
        assert '<option value="2h">2 hours</option>' in html


def test_a_block_until_a_time_needs_the_time(plugin_manager: Client) -> None:
    response = dashboard.post(plugin_manager, "/toolkits/issues/block/", on="true", was="false", span="at")
    assert "Enter an end time." in dashboard.text(response)
    assert not entry_of("toolkit", "issues").blocked


def entry_of(kind: blocking.Kind, name: str) -> Any:
    stored = snapshots.catalog()
    return {"tool": stored.tools, "toolkit": stored.toolkits, "plugin": stored.plugins}[kind][name]
