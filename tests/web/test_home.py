"""Tests of the Overview page."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import acting, servers
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
from toolbelt.control.people import tokens
from toolbelt.runtime import credentials
from toolbelt.store import clock, context_use

pytestmark = [pytest.mark.django_db]


MAX_QUERIES = 20


def look(browser: Client) -> Any:
    return browser.get("/").context["page"]


def concerns(browser: Client) -> list[str]:
    return [one.title for one in look(browser).concerns]


def done(browser: Client) -> dict[str, bool]:
    """Return whether each of the first steps is checked off, by title."""
    steps = acting.text(browser.get("/")).split('<p class="step-mark')[1:]
    return {re.findall('step-title">(.*?)<', step)[0]: step.startswith(" done") for step in steps}


def test_an_empty_installation_shows_the_first_steps_and_the_demo(admin_client: Client) -> None:
    html = acting.text(admin_client.get("/"))
    assert "manage.py demo</code>" in html
    assert '<a class="button primary small" href="/plugins/add/">Add server</a>' in html
    assert done(admin_client) == {
        "Add a server": False,
        "Review its tools": False,
        "Create an agent": False,
        "Connect it": False,
        "Call a tool": False,
    }


def test_first_steps_are_checked_off_and_disappear_after_the_first_call(admin_client: Client) -> None:
    def ticked() -> list[str]:
        return [title for title, is_done in done(admin_client).items() if is_done]

    servers.add()
    assert ticked() == ["Add a server"]
    servers.answer(servers.READ, servers.WRITE)
    assert ticked() == ["Add a server"]
    servers.approve()
    assert ticked() == ["Add a server", "Review its tools"]
    assert "manage.py demo" not in admin_client.get("/").content.decode()
    factories.agent("ada")
    assert ticked() == ["Add a server", "Review its tools", "Create an agent"]
    issued = tokens.issue(writing.by("olive", via="command"), agent="ada")
    assert "Connect it" not in ticked()
    credentials.recognize(issued.text)
    credentials.write_uses()
    assert ticked()[-1] == "Connect it"
    factories.call()
    assert not done(admin_client)


def test_steps_without_permission_are_left_to_an_administrator(viewer: Client) -> None:
    html = acting.text(viewer.get("/"))
    assert "An administrator does this." in html
    assert "/plugins/add/" not in html
    assert "/new/agent/" not in html


def test_each_agent_is_listed_with_its_tools(reader: Client) -> None:
    page = look(reader)
    assert [(one.key, one.protected) for one in page.agents] == [("ada", False), ("bob", True)]
    html = acting.text(reader.get("/"))
    assert (
        f'<strong>{page.agents[0].active}</strong> <span class="quiet">of {page.agents[0].total} tools'
        in html
    )
    assert '<a href="/" aria-current="page">' in html


def test_todays_changes_are_listed_and_can_be_undone(reader: Client) -> None:
    acting.switch(reader, "issues", "false", "true")
    entry = acting.newest()
    page = look(reader)
    assert [(one.id, one.who, one.subject, one.agent) for one in page.entries] == [
        (entry.pk, "olive", "issues", "ada")
    ]
    answer = acting.post(reader, f"/audit/{entry.pk}/undo/", htmx=False, next="/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert "Undone: olive turned off issues." in acting.text(reader.get("/"))
    assert acting.stored().switches["issues"] is True


def test_the_last_earlier_change_is_summarized(reader: Client) -> None:
    models.AuditEntry.objects.create(
        at=timezone.now() - dt.timedelta(days=3),
        actor="sam",
        via="api",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        key="issues",
        before=None,
        after=True,
    )
    page = look(reader)
    assert (page.entries, page.last) == ((), "sam turned on issues, 3 d ago")


def test_a_viewer_is_not_offered_undo(viewer: Client, operator: Client, belt: None) -> None:
    acting.switch(operator, "issues", "false", "true")
    assert [one.undoable for one in look(viewer).entries] == [False]


def test_nothing_needs_attention_in_a_healthy_installation(reader: Client) -> None:
    models.Tool.objects.update(seen=True)
    models.Plugin.objects.update(status="ready")
    assert concerns(reader) == []
    assert "Nothing needs attention" in acting.text(reader.get("/"))


def test_tools_not_running_need_attention_unless_turned_off_or_blocked(
    reader: Client,
) -> None:
    models.Tool.objects.update(seen=True)
    github = models.Plugin.objects.filter(name="github")
    github.update(in_code=True, not_running=["github__list_issues", "github__star_repo"])
    first = look(reader).concerns[0]
    assert first.title == "2 tools of GitHub not running"
    assert "Restart Toolbelt's servers" in first.about
    assert (first.state, first.act, first.url) == ("unavailable", "View", "/plugins/github/")
    for settled in ({"active": False}, {"blocked": True}):
        github.update(active=True, blocked=False)
        github.update(**settled)
        assert not any("not running" in title for title in concerns(reader))


def test_failed_plugins_unreviewed_tools_budgets_and_blocks_need_attention(reader: Client) -> None:
    models.Tool.objects.update(seen=True)
    models.Plugin.objects.filter(name="github").update(status="failed", error="It <b>broke</b>.")
    clock = models.Plugin.objects.create(name="clock")
    models.Agent.objects.filter(key="ada").update(max_tools=0, on_exceed="warn")
    factories.tool("clock__new", plugin=clock, seen=False)
    blocking.set_blocked(writing.by("sam", via="api"), "tool", "shell", True, was=False)
    found = look(reader).concerns
    titles = [one.title for one in found]
    assert titles[:2] == ["Tool shell is blocked for everyone", "GitHub has failed"]
    assert "ada: over budget" in titles
    assert "1 tool of clock awaits review" in titles
    assert "Tool shell is blocked for everyone" in titles
    html = acting.text(reader.get("/"))
    assert "It &lt;b&gt;broke&lt;/b&gt;." in html
    for one in found:
        assert reader.get(one.url.partition("#")[0]).status_code == 200, one.url


def test_more_severe_concerns_are_listed_first(reader: Client) -> None:
    models.Plugin.objects.update(status="ready")
    models.Tool.objects.update(seen=True)
    models.Agent.objects.filter(key="ada").update(max_tools=3, on_exceed="defer")
    models.Agent.objects.filter(key="bob").update(max_tools=0, on_exceed="warn")
    assert concerns(reader)[:2] == ["bob: over budget", "ada: deferred by budget"]


def test_overrides_without_effect_need_attention(reader: Client) -> None:
    models.Plugin.objects.update(status="ready")
    models.Tool.objects.update(seen=True)
    sam = writing.by("sam", via="api")
    switches.flip(sam, "ada", "releases", False)
    switches.override(sam.replace(confirm=True), "ada", "github__merge", True)
    models.Tool.objects.filter(key="clock__now").update(retired=True)
    (one,) = [one for one in look(reader).concerns if "override" in one.title]
    assert one.title == "2 overrides have no effect for ada"
    assert "clock__now (on: its plugin no longer offers it)" in one.about
    assert "github__merge (on: toolkit releases is off)" in one.about
    assert one.url == "/agents/ada/?show=overridden"


def test_effective_overrides_need_no_attention(reader: Client) -> None:
    models.Plugin.objects.update(status="ready")
    models.Tool.objects.update(seen=True)
    sam = writing.by("sam", via="api")
    switches.override(sam, "ada", "shell", False)
    switches.override(sam.replace(confirm=True), "ada", "papers", True)
    assert not [title for title in concerns(reader) if "override" in title]


def test_calls_are_shown_as_a_chart_with_a_text_summary(reader: Client) -> None:
    for days_ago in (0, 1, 1, 40):
        factories.call(days_ago=days_ago)
    factories.call(days_ago=1, outcome="tool-failed")
    usage = look(reader).usage
    assert usage.words.startswith("4 calls in 30 days, the most on ")
    assert usage.words.endswith(": 3; 1 error")
    assert (usage.today, usage.week, usage.errors) == (1, 4, "25.0 %")
    assert len(usage.line.split()) == 30
    assert f'aria-label="{usage.words}"' in reader.get("/").content.decode()


def test_call_statistics_require_permission(viewer: Client, belt: None) -> None:
    factories.call()
    assert look(viewer).usage is None
    assert "/calls/" not in acting.text(viewer.get("/"))


def test_query_count_does_not_grow_with_agents_calls_and_changes(reader: Client) -> None:
    def flip(times: int) -> None:
        for number in range(times):
            on, was = ("false", "true") if number % 2 else ("true", "false")
            acting.switch(reader, "issues", on, was)

    factories.call()
    acting.switch(reader, "issues", "false", "true")
    flip(6)
    look(reader)
    before = acting.queries(lambda: look(reader))
    for number in range(30):
        factories.agent(f"agent-{number}", max_tools=0, on_exceed="warn")
        factories.call(days_ago=number)
    flip(6)
    look(reader)
    page = look(reader)
    assert (len(page.agents), page.more_agents, page.more_entries) == (14, "All 32 agents", "7 more today")
    assert page.more_concerns
    assert acting.queries(lambda: look(reader)) == before <= MAX_QUERIES


def test_the_context_saved_by_all_agents_is_one_figure(reader: Client) -> None:
    assert look(reader).saved is None
    assert "Context saved" not in acting.text(reader.get("/"))

    today = clock.now().date()
    month_ago = today - dt.timedelta(days=30)
    context_use.add_all(
        [
            context_use.Use("ada", today, 3, 80, 1000),
            context_use.Use("bob", today, 1, 20, 1000),
            context_use.Use("bob", month_ago, 1, 9999, 9999),
        ]
    )

    assert "95 % less context: ~100 instead of ~2.0k tokens" in acting.text(reader.get("/"))


def test_only_your_own_changes_can_be_undone_from_the_overview(reader: Client) -> None:
    switches.flip(writing.by("sam", via="api"), "ada", "issues", False)
    acting.switch(reader, "issues", "true", "false")
    assert [(one.who, one.undoable) for one in look(reader).entries] == [("olive", True), ("sam", False)]
