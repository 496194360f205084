"""Tests of an agent's Access page: its content, permissions, filters and query counts."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories, fast_fixtures
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR
from toolbelt.web.access import views as access

pytestmark = pytest.mark.django_db


def open_page(browser: Client, address: str = dashboard.ACCESS, **query: Any) -> Any:
    """Return the view model of the page."""
    return browser.get(address, query).context["page"]


def shown(page: Any) -> dict[str, list[str]]:
    """Return the keys of the listed tools by section."""
    return {
        name: [row.key for row in section.tools or ()] for name, section in dashboard.sections(page).items()
    }


def rows(page: Any) -> dict[str, Any]:
    """Return the rows of the listed tools by key."""
    return {row.key: row for section in dashboard.sections(page).values() for row in section.tools or ()}


def test_the_page_lists_every_toolkit_and_the_tools_outside_toolkits(operator: Client, belt: None) -> None:
    assert shown(open_page(operator)) == {
        "toolkit-issues": ["github__issue_read", "github__issue_write"],
        "toolkit-releases": ["github__merge", "github__issue_read"],
        "toolkit-research": ["papers"],
        "plugin-acme.clock": ["clock__now"],
        "unplugged": ["shell"],
    }


def test_the_page_shows_each_tools_state_with_its_reason(operator: Client, belt: None) -> None:
    page = open_page(operator)
    assert (page.agent.active, page.agent.total, page.agent.profile) == ("4", "6", "no loadout")
    issues, releases, research = list(dashboard.sections(page).values())[:3]
    assert (issues.active, issues.total, issues.switch.words) == (2, 2, "On")
    assert (releases.active, releases.switch.words, releases.switch.basis) == (1, "1 of 2 on", "Default")
    assert (research.hint, research.marks[0].word) == ("1 on request", "on request")
    assert {key: (row.state, row.reason) for key, row in rows(page).items()} == {
        "github__issue_read": ("active", "toolkit issues is on"),
        "github__issue_write": ("active", "toolkit issues is on"),
        "github__merge": ("dormant", "nothing grants it"),
        "papers": ("discoverable", "in toolkit research, which the agent may load"),
        "clock__now": ("active", "its override is on"),
        "shell": ("active", "on by default"),
    }


def test_sections_are_grouped_by_state_unless_sorted_by_policy(operator: Client, belt: None) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    page = open_page(operator)
    groups = [
        (group.label, group.count, group.open, [section.key for section in group.sections])
        for group in page.groups
    ]
    assert groups == [
        ("On request", 1, True, ["research"]),
        ("Off", 2, False, ["issues", "releases"]),
        ("Not in a toolkit", 2, False, ["acme.clock", ""]),
    ]
    by_policy = open_page(operator, sort="policy")
    assert len(by_policy.groups) == 1
    assert 'class="group"' not in dashboard.text(operator.get(dashboard.ACCESS, {"sort": "policy"}))
    assert list(dashboard.sections(by_policy))[:3] == [
        "toolkit-issues",
        "toolkit-releases",
        "toolkit-research",
    ]


def test_a_folded_group_opens_when_the_url_opens_one_of_its_sections(operator: Client, belt: None) -> None:
    folded = {group.state: group.open for group in open_page(operator).groups}
    opened = {group.state: group.open for group in open_page(operator, open="plugin-acme.clock").groups}
    assert (folded["loose"], opened["loose"]) == (False, True)


def test_search_matches_are_highlighted_and_escaped(operator: Client, belt: None) -> None:
    entries.change(OPERATOR, "toolkit", "research", {"title": "Read <b>papers</b>"})
    html = dashboard.text(operator.get(dashboard.ACCESS, {"q": "PAPERS"}))
    assert "Read &lt;b&gt;<mark>papers</mark>&lt;/b&gt;" in html
    assert "<code><mark>papers</mark></code>" in html
    hostile = dashboard.text(operator.get(dashboard.ACCESS, {"q": "<b>"}))
    assert "Read <mark>&lt;b&gt;</mark>papers" in hostile
    assert "<b>" not in hostile


def test_each_override_shows_the_default_it_would_reset_to(operator: Client, belt: None) -> None:
    dashboard.override(operator, "shell", "false", "unset")
    page = open_page(operator)
    there = {key: (row.stored, row.inherits) for key, row in rows(page).items()}
    assert there["shell"] == ("false", "on")
    assert there["clock__now"] == ("true", "off")
    assert there["papers"] == ("unset", "on request")


def test_a_tool_without_a_stated_risk_has_a_risk_not_stated_badge(operator: Client, belt: None) -> None:
    row = rows(open_page(operator))["shell"]
    assert (row.key, row.risk) == ("shell", "not stated")
    assert ">risk not stated<span" in dashboard.text(operator.get(dashboard.ACCESS))
    assert rows(open_page(operator))["github__merge"].risk == "destructive"


def test_a_viewer_sees_states_as_text_without_controls(viewer: Client, belt: None) -> None:
    html = dashboard.text(viewer.get(dashboard.ACCESS))
    main = html.partition("<main")[2].partition("<aside")[0]
    for control in ('role="switch"', '<form class="override"', 'method="post"', "Reset", "Turn off"):
        assert control not in main
    assert "<strong>On</strong>" in main
    assert "Default" in main
    assert "Override: <strong>On</strong>" in main
    assert "Default (on request)" in main
    assert "toolkit issues is on" in main
    assert "view only" in main


def test_an_operator_gets_a_control_for_each_toolkit_and_tool(operator: Client, belt: None) -> None:
    html = operator.get(dashboard.ACCESS).content.decode()
    assert html.count('role="switch"') == 3
    assert html.count('data-control="override"') == 7  # one tool is in two toolkits


def test_a_switch_posts_the_requested_and_the_displayed_state(operator: Client, belt: None) -> None:
    html = dashboard.text(operator.get(dashboard.ACCESS))
    issues = html.partition('action="/agents/ada/switches/issues/"')[2].partition("</form>")[0]
    assert 'name="on" value="false" aria-checked="true"' in issues
    assert 'name="was" value="true"' in issues
    assert 'value="unset" data-other' in issues
    research = html.partition('action="/agents/ada/switches/research/"')[2].partition("</form>")[0]
    assert 'name="on" value="true" aria-checked="false"' in research
    assert 'name="was" value="unset"' in research


def test_the_last_change_is_shown_and_can_be_undone_by_its_author(
    operator: Client, viewer: Client, belt: None
) -> None:
    assert open_page(operator).agent.last_change is None
    dashboard.switch(operator, "issues", "false", "true")
    change = open_page(operator).agent.last_change
    assert (change.who, change.action) == ("olive", "turned off Issues and reviews")
    assert change.entry == dashboard.latest_entry().pk
    assert open_page(viewer).agent.last_change.entry is None
    way = f'<a href="/agents/ada/history/#change-{change.entry}">View in history</a>'
    assert way in dashboard.text(viewer.get("/agents/ada/"))
    assert dashboard.sections(open_page(operator))["toolkit-issues"].switch.since == "by olive, just now"


@pytest.mark.parametrize("other", [{"actor": "otto"}, {"hours": 2}])
def test_no_undo_is_offered_for_old_changes_or_those_of_other_operators(
    operator: Client, belt: None, other: dict[str, Any]
) -> None:
    models.AuditEntry.objects.create(
        at=timezone.now() - dt.timedelta(hours=other.get("hours", 0)),
        actor=other.get("actor", "olive"),
        via="screen",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        key="issues",
        after=True,
    )
    change = open_page(operator).agent.last_change
    assert (change.action, change.entry) == ("turned on Issues and reviews", None)
    assert "View in history" in dashboard.text(operator.get("/agents/ada/"))


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({"q": "issue_w"}, {"github__issue_write"}),
        ({"q": "FILES an"}, {"github__issue_write"}),
        ({"q": "Reviews"}, {"github__issue_read", "github__issue_write"}),
        ({"q": "acme"}, {"clock__now"}),
        ({"show": "active"}, {"github__issue_read", "github__issue_write", "clock__now", "shell"}),
        ({"show": "overridden"}, {"clock__now"}),
        ({"show": "destructive"}, {"github__merge", "shell"}),
        ({"show": "destructive", "q": "merge"}, {"github__merge"}),
        ({"q": "xyzzy"}, set()),
        ({"q": "which papers were written"}, {"papers"}),
    ],
)
def test_tools_are_filtered_by_search_text_and_state(
    operator: Client, belt: None, query: dict[str, str], keys: set[str]
) -> None:
    page = open_page(operator, **query)
    assert {key for tools in shown(page).values() for key in tools} == keys
    assert page.filter.is_filtered
    assert page.filter.matches.startswith(f"{len(keys)} tool")
    assert all(group.open for group in page.groups)
    assert all(section.open for section in dashboard.sections(page).values())


def test_a_filter_without_matches_links_to_the_unfiltered_page(operator: Client, belt: None) -> None:
    html = dashboard.text(operator.get(dashboard.ACCESS, {"q": "no such tool"}))
    assert "No matching tools" in html
    assert '<a href="/agents/ada/">Show all</a>' in html


@pytest.mark.parametrize("query", [{"show": "everything"}, {"q": "\0"}, {"message": "x" * 4001}])
def test_invalid_query_parameters_are_ignored(operator: Client, belt: None, query: dict[str, str]) -> None:
    page = open_page(operator, **query)
    assert not page.filter.is_filtered
    assert len(shown(page)) == 5


def test_an_htmx_filter_request_returns_only_the_sections(operator: Client, belt: None) -> None:
    headers = {**dashboard.HTMX, "HX-Target": "sections"}
    html = dashboard.text(operator.get(dashboard.ACCESS, {"q": "papers"}, headers=headers))
    assert html.startswith('<span id="filter-count"')
    assert "<html" not in html
    assert "papers" in html


def test_a_trial_message_shows_the_directive_that_it_triggers(operator: Client, belt: None) -> None:
    directive = open_page(operator, message="there is a BUG").model.directive
    assert directive.tools == ("github__issue_write",)
    assert directive.because == (("issues", "file"),)
    html = dashboard.text(
        operator.get("/agents/ada/directive/", {"message": "a bug"}, headers=dashboard.HTMX)
    )
    assert "<code>github__issue_write</code>" in html
    assert "<html" not in html
    none = dashboard.text(operator.get("/agents/ada/directive/", {"message": "hello"}))
    assert "No directive." in none


@pytest.mark.parametrize("address", ["/agents/nobody/", "/agents/nobody/directive/", "/agents/%00/"])
def test_an_unknown_agent_is_not_found(operator: Client, belt: None, address: str) -> None:
    assert operator.get(address).status_code == 404


def test_texts_from_upstream_servers_are_escaped(operator: Client, belt: None) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    entries.change(OPERATOR, "tool", "papers", {"description": evil, "title": evil})
    entries.change(OPERATOR, "toolkit", "research", {"title": evil, "description": evil, "policy": evil})
    entries.change(OPERATOR, "plugin", "acme.clock", {"title": evil, "description": evil})
    entries.change(OPERATOR.replace(reason=evil, confirm=True), "agent", "ada", {"role": evil})
    dashboard.override(operator, "papers", "true", "unset", reason=evil)
    pages = [operator.get(address) for address in ("/agents/", "/agents/ada/", "/audit/")]
    pages.append(
        dashboard.switch(operator, "research", "true", "unset", message=evil, sections="toolkit-research")
    )
    for page in pages:
        html = page.content.decode()
        assert "<script>" not in html
        assert "<img" not in html
    assert "&lt;script&gt;alert(1)" in pages[1].content.decode()


def test_a_long_description_is_truncated_but_searched_in_full(operator: Client, belt: None) -> None:
    entries.change(
        OPERATOR, "tool", "papers", {"description": "Finds papers.\n\n" + "Much more. " * 90 + "Needle."}
    )
    row = rows(open_page(operator, q="needle"))["papers"]
    assert row.description.startswith("Finds papers. Much more.")
    assert row.description.endswith("…")
    assert len(row.description) <= 240


def test_sections_load_their_tools_on_opening_above_the_page_limit(
    operator: Client, belt: None, more_tools: Any
) -> None:
    more_tools(access.MAX_AT_ONCE)
    page = open_page(operator)
    assert shown(page)["toolkit-research"] == []
    section = dashboard.sections(page)["toolkit-research"]
    assert section.tools is None
    open_url = "/agents/ada/?open=toolkit-research"
    assert f'hx-get="{open_url}"' in dashboard.text(operator.get(dashboard.ACCESS))
    opened = open_page(operator, open_url)
    assert shown(opened)["toolkit-research"] == ["papers"]
    headers = {**dashboard.HTMX, "HX-Target": "toolkit-research:tools"}
    html = dashboard.text(operator.get(open_url, headers=headers))
    assert html.startswith('<ul id="toolkit-research:tools">')
    assert html.count('class="tool"') == 1
    nothing = {**dashboard.HTMX, "HX-Target": "toolkit-nothing:tools"}
    assert operator.get(open_url, headers=nothing).status_code == 404


def test_a_filter_matching_hundreds_of_tools_shows_counts_and_folded_sections(
    operator: Client, belt: None, more_tools: Any
) -> None:
    more_tools(access.MAX_AT_ONCE + 20)
    page = open_page(operator, q="one of many")
    assert page.filter.matches == "120 tools in 10 sections."
    section = next(iter(dashboard.sections(page).values()))
    assert (section.tools, section.matching, section.open) == (None, 12, False)
    open_url = f"/agents/ada/?q=one+of+many&open={section.id}"
    assert f'hx-get="{open_url}"'.replace("&", "&amp;") in dashboard.text(
        operator.get(dashboard.ACCESS, {"q": "one of many"})
    )
    opened = dashboard.sections(open_page(operator, open_url))
    assert (len(opened), len(opened[section.id].tools)) == (10, 12)


def test_budget_usage_and_deferred_tools_are_shown_as_numbers(operator: Client, belt: None) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 3, "on_exceed": "defer"}}
    )
    model = open_page(operator).model
    assert (model.spent.tools, model.spent.budget.max_tools, model.percent) == (3, 3, 100)
    assert not model.spent.is_exceeded
    assert model.warnings == ("1 tool deferred by the budget: the agent can load it on request.",)
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tokens": 1, "on_exceed": "warn"}}
    )
    response = operator.get(dashboard.ACCESS)
    model = response.context["page"].model
    assert "of 1 tokens" in dashboard.text(response)
    assert model.spent.is_exceeded
    assert model.warnings == ("Over budget: this agent only gets a warning.",)


def test_a_section_is_marked_as_blocked_off_or_failed(operator: Client, belt: None) -> None:
    entries.change(OPERATOR, "toolkit", "issues", {"blocked": True})
    entries.change(OPERATOR, "plugin", "acme.clock", {"active": False, "blocked": True})
    sections = dashboard.sections(open_page(operator))
    assert [mark.word for mark in sections["toolkit-issues"].marks] == ["blocked for everyone"]
    assert [mark.word for mark in sections["plugin-acme.clock"].marks] == ["off", "blocked for everyone"]
    models.Plugin.objects.filter(name="acme.clock").update(status="failed")
    assert dashboard.sections(open_page(operator))["plugin-acme.clock"].marks[0].word == "failed"


def test_an_empty_catalog_shows_an_empty_state(operator: Client) -> None:
    factories.agent("ada")
    assert "No tools yet" in operator.get(dashboard.ACCESS).content.decode()


def test_element_ids_on_the_page_are_unique(operator: Client, belt: None) -> None:
    tools = list(models.Tool.objects.all())
    for key in ("dev", "dev-tools", "dev-title", "dev-counts"):
        factories.toolkit(key, *tools)
    html = operator.get(dashboard.ACCESS).content.decode()
    ids = [part.partition('"')[0] for part in html.split(' id="')[1:]]
    assert sorted(set(ids)) == sorted(ids)


def test_query_counts_do_not_grow_with_the_number_of_tools(
    operator: Client, belt: None, more_tools: Any
) -> None:
    counts = []
    for number in (44, 450):
        more_tools(number)
        # So that the page shows a last change, and the next is not the first after rows that no log has.
        dashboard.switch(operator, "issues", "false", "true")
        open_page(operator)
        looking = dashboard.count_queries(lambda: open_page(operator))
        flipping = dashboard.count_queries(lambda: dashboard.switch(operator, "issues", "true", "false"))
        counts.append((looking, flipping))
    assert counts[0] == counts[1]
    assert counts[0] <= (14, 31)


def test_access_pages_of_the_demo_are_at_most_60_kb_compressed(operator: Client) -> None:
    fast_fixtures.demo()
    sizes = {}
    for key in models.Agent.objects.values_list("key", flat=True):
        response = operator.get(f"/agents/{key}/")
        assert response.status_code == 200
        sizes[key] = len(gzip.compress(response.content))
    assert len(sizes) >= 8
    assert {key: size for key, size in sizes.items() if size > 60_000} == {}


def test_an_agents_title_comes_first_and_its_key_beside_it(operator: Client, belt: None) -> None:
    models.Agent.objects.filter(key="ada").update(title="Ada <1>")
    response = dashboard.switch(operator, "issues", "false", "true")
    assert response.context["page"].notice.text.endswith("is off for Ada <1> `ada`.")
    assert "<h1>Ada &lt;1&gt;</h1>" in operator.get("/agents/ada/").content.decode()
    listed = operator.get("/agents/").content.decode()
    assert ">Ada &lt;1&gt;</a>" in listed
    assert '<code class="quiet">ada</code>' in listed
