"""Tests of an agent's Access page: what it shows to whom, its filters, and its cost."""

from __future__ import annotations

import datetime as dt
import functools
import gzip
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories, fast_fixtures
from tests.web import acting
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR
from toolbelt.web.access import views as access

pytestmark = pytest.mark.django_db


def look(browser: Client, address: str = acting.ACCESS, **said: Any) -> Any:
    """Open the page; give what it shows."""
    return browser.get(address, said).context["page"]


def shown(page: Any) -> dict[str, list[str]]:
    """List the tools that are there, by section."""
    return {name: [row.key for row in section.tools or ()] for name, section in acting.sections(page).items()}


def rows(page: Any) -> dict[str, Any]:
    """Return the rows of the tools that are there, by key."""
    return {row.key: row for section in acting.sections(page).values() for row in section.tools or ()}


def test_it_shows_every_toolkit_and_what_is_outside_of_them(operator: Client, belt: None) -> None:
    assert shown(look(operator)) == {
        "toolkit-issues": ["github__issue_read", "github__issue_write"],
        "toolkit-releases": ["github__merge", "github__issue_read"],
        "toolkit-research": ["papers"],
        "plugin-acme.clock": ["clock__now"],
        "unplugged": ["shell"],
    }


def test_it_says_what_the_agent_has_and_why(operator: Client, belt: None) -> None:
    page = look(operator)
    assert (page.agent.active, page.agent.total, page.agent.profile) == ("4", "6", "no loadout")
    issues, releases, research = list(acting.sections(page).values())[:3]
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


def test_sections_stand_in_groups_by_what_the_agent_has_of_them(operator: Client, belt: None) -> None:
    acting.switch(operator, "issues", "false", "true")
    page = look(operator)
    found = [
        (group.label, group.count, group.open, [one.key for one in group.sections]) for group in page.groups
    ]
    assert found == [
        ("On request", 1, True, ["research"]),
        ("Off", 2, False, ["issues", "releases"]),
        ("Not in a toolkit", 2, False, ["acme.clock", ""]),
    ]
    by_policy = look(operator, sort="policy")
    assert [group.label for group in by_policy.groups] == [""]
    assert list(acting.sections(by_policy))[:3] == ["toolkit-issues", "toolkit-releases", "toolkit-research"]


def test_a_folded_group_is_open_if_the_address_opens_one_of_its_sections(
    operator: Client, belt: None
) -> None:
    folded = {group.state: group.open for group in look(operator).groups}
    opened = {group.state: group.open for group in look(operator, open="plugin-acme.clock").groups}
    assert (folded["loose"], opened["loose"]) == (False, True)


def test_what_was_searched_for_is_marked_and_escaped(operator: Client, belt: None) -> None:
    entries.change(OPERATOR, "toolkit", "research", {"title": "Read <b>papers</b>"})
    html = acting.text(operator.get(acting.ACCESS, {"q": "PAPERS"}))
    assert "Read &lt;b&gt;<mark>papers</mark>&lt;/b&gt;" in html
    assert "<code><mark>papers</mark></code>" in html
    hostile = acting.text(operator.get(acting.ACCESS, {"q": "<b>"}))
    assert "Read <mark>&lt;b&gt;</mark>papers" in hostile
    assert "<b>" not in hostile


def test_inherit_says_what_it_would_give(operator: Client, belt: None) -> None:
    acting.override(operator, "shell", "false", "unset")
    page = look(operator)
    there = {key: (row.stored, row.inherits) for key, row in rows(page).items()}
    assert there["shell"] == ("false", "on")
    assert there["clock__now"] == ("true", "off")
    assert there["papers"] == ("unset", "on request")


def test_the_badge_of_a_tool_that_does_not_state_its_risk_says_so(operator: Client, belt: None) -> None:
    row = rows(look(operator))["shell"]
    assert (row.key, row.risk.word) == ("shell", "not stated")
    assert ">risk not stated<span" in acting.text(operator.get(acting.ACCESS))
    assert rows(look(operator))["github__merge"].risk.word == "destructive"


def test_one_who_may_only_look_reads_states_in_words(viewer: Client, belt: None) -> None:
    html = acting.text(viewer.get(acting.ACCESS))
    main = html.partition("<main")[2].partition("<aside")[0]
    for control in ('role="switch"', '<form class="override"', 'method="post"', "Reset", "Turn off"):
        assert control not in main
    assert "<strong>On</strong>" in main
    assert "Default" in main
    assert "Override: <strong>On</strong>" in main
    assert "Default (on request)" in main
    assert "toolkit issues is on" in main
    assert "view only" in main


def test_one_who_may_change_gets_a_control_for_each(operator: Client, belt: None) -> None:
    html = operator.get(acting.ACCESS).content.decode()
    assert html.count('role="switch"') == 3
    assert html.count('data-control="override"') == 7  # one tool is in two toolkits


def test_the_switch_posts_what_is_wanted_and_what_was_seen(operator: Client, belt: None) -> None:
    html = acting.text(operator.get(acting.ACCESS))
    issues = html.partition('action="/agents/ada/switches/issues/"')[2].partition("</form>")[0]
    assert 'name="on" value="false" aria-checked="true"' in issues
    assert 'name="was" value="true"' in issues
    assert 'value="unset" data-other' in issues
    research = html.partition('action="/agents/ada/switches/research/"')[2].partition("</form>")[0]
    assert 'name="on" value="true" aria-checked="false"' in research
    assert 'name="was" value="unset"' in research


def test_the_last_change_is_told_with_a_way_back(operator: Client, viewer: Client, belt: None) -> None:
    assert look(operator).agent.last_change is None
    acting.switch(operator, "issues", "false", "true")
    change = look(operator).agent.last_change
    assert (change.who, change.did, change.when.words) == ("olive", "turned off issues", "just now")
    assert change.entry == acting.newest().pk
    assert look(viewer).agent.last_change.entry is None
    way = f'<a href="/agents/ada/history/#change-{change.entry}">View in history</a>'
    assert way in acting.text(viewer.get("/agents/ada/"))
    assert acting.sections(look(operator))["toolkit-issues"].switch.since == "by olive, just now"


@pytest.mark.parametrize("other", [{"actor": "otto"}, {"hours": 2}])
def test_another_operators_change_or_an_older_one_is_not_undone_beside_it(
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
    change = look(operator).agent.last_change
    assert (change.did, change.entry) == ("turned on issues", None)
    assert "View in history" in acting.text(operator.get("/agents/ada/"))


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ({"q": "issue_w"}, {"github__issue_write"}),
        ({"q": "FILES an"}, {"github__issue_write"}),
        ({"q": "Reviews"}, {"github__issue_read", "github__issue_write"}),
        ({"q": "acme"}, {"clock__now"}),
        ({"show": "active"}, {"github__issue_read", "github__issue_write", "clock__now", "shell"}),
        ({"show": "overridden"}, {"clock__now"}),
        ({"show": "destructive"}, {"github__merge", "shell"}),
        ({"show": "destructive", "q": "merge"}, {"github__merge"}),
        ({"q": "no such tool"}, set()),
    ],
)
def test_it_is_narrowed_by_what_is_typed_and_chosen(
    operator: Client, belt: None, said: dict[str, str], keys: set[str]
) -> None:
    page = look(operator, **said)
    assert {key for tools in shown(page).values() for key in tools} == keys
    assert page.filter.narrowed
    assert page.filter.matches.startswith(f"{len(keys)} tool")
    assert all(group.open for group in page.groups)
    assert all(section.open for section in acting.sections(page).values())


def test_nothing_that_fits_is_said_with_a_way_out(operator: Client, belt: None) -> None:
    html = acting.text(operator.get(acting.ACCESS, {"q": "no such tool"}))
    assert "No matching tools" in html
    assert '<a href="/agents/ada/">Show all</a>' in html


@pytest.mark.parametrize("said", [{"show": "everything"}, {"q": "\0"}, {"message": "x" * 4001}])
def test_nonsense_in_the_address_narrows_nothing(operator: Client, belt: None, said: dict[str, str]) -> None:
    page = look(operator, **said)
    assert not page.filter.narrowed
    assert len(shown(page)) == 5


def test_typing_a_filter_gets_only_the_sections(operator: Client, belt: None) -> None:
    headers = {**acting.HTMX, "HX-Target": "sections"}
    html = acting.text(operator.get(acting.ACCESS, {"q": "papers"}, headers=headers))
    assert html.startswith('<span id="filter-count"')
    assert "<html" not in html
    assert "papers" in html


def test_a_message_shows_what_the_model_would_be_told_to_focus_on(operator: Client, belt: None) -> None:
    directive = look(operator, message="there is a BUG").model.directive
    assert directive.tools == ("github__issue_write",)
    assert directive.because == (("issues", "file"),)
    html = acting.text(operator.get("/agents/ada/directive/", {"message": "a bug"}, headers=acting.HTMX))
    assert "<code>github__issue_write</code>" in html
    assert "<html" not in html
    none = acting.text(operator.get("/agents/ada/directive/", {"message": "hello"}))
    assert "No directive." in none


@pytest.mark.parametrize("address", ["/agents/nobody/", "/agents/nobody/directive/", "/agents/%00/"])
def test_an_agent_that_is_not_there_has_no_page(operator: Client, belt: None, address: str) -> None:
    assert operator.get(address).status_code == 404


def test_what_upstream_servers_write_is_text(operator: Client, belt: None) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    entries.change(OPERATOR, "tool", "papers", {"description": evil, "title": evil})
    entries.change(OPERATOR, "toolkit", "research", {"title": evil, "description": evil, "policy": evil})
    entries.change(OPERATOR, "plugin", "acme.clock", {"title": evil, "description": evil})
    entries.change(OPERATOR.replace(reason=evil, confirm=True), "agent", "ada", {"role": evil})
    acting.override(operator, "papers", "true", "unset", reason=evil)
    pages = [operator.get(address) for address in ("/agents/", "/agents/ada/", "/audit/")]
    pages.append(
        acting.switch(operator, "research", "true", "unset", message=evil, sections="toolkit-research")
    )
    for page in pages:
        html = page.content.decode()
        assert "<script>" not in html
        assert "<img" not in html
    assert "&lt;script&gt;alert(1)" in pages[1].content.decode()


def test_a_long_description_is_cut_in_the_row_and_searched_whole(operator: Client, belt: None) -> None:
    entries.change(
        OPERATOR, "tool", "papers", {"description": "Finds papers.\n\n" + "Much more. " * 90 + "Needle."}
    )
    row = rows(look(operator, q="needle"))["papers"]
    assert row.description.startswith("Finds papers. Much more.")
    assert row.description.endswith("…")
    assert len(row.description) <= 240


def test_above_a_hundred_tools_a_section_brings_its_tools_when_it_is_opened(
    operator: Client, belt: None, more_tools: Any
) -> None:
    more_tools(access.MAX_AT_ONCE)
    page = look(operator)
    assert shown(page)["toolkit-research"] == []
    section = acting.sections(page)["toolkit-research"]
    assert section.tools is None
    opened = look(operator, section.open_url)
    assert shown(opened)["toolkit-research"] == ["papers"]
    headers = {**acting.HTMX, "HX-Target": "toolkit-research:tools"}
    html = acting.text(operator.get(section.open_url, headers=headers))
    assert html.startswith('<ul id="toolkit-research:tools">')
    assert html.count('class="tool"') == 1
    nothing = {**acting.HTMX, "HX-Target": "toolkit-nothing:tools"}
    assert operator.get(section.open_url, headers=nothing).status_code == 404


def test_a_filter_that_fits_hundreds_of_tools_counts_them_and_opens_on_request(
    operator: Client, belt: None, more_tools: Any
) -> None:
    more_tools(access.MAX_AT_ONCE + 20)
    page = look(operator, q="one of many")
    assert page.filter.matches == "120 tools in 10 sections."
    section = next(iter(acting.sections(page).values()))
    assert (section.tools, section.matching, section.open) == (None, 12, False)
    opened = acting.sections(look(operator, section.open_url))
    assert (len(opened), len(opened[section.id].tools)) == (10, 12)


def test_what_a_budget_does_is_told_by_number(operator: Client, belt: None) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 3, "on_exceed": "defer"}}
    )
    model = look(operator).model
    assert (model.tools, model.most_tools, model.percent, model.over) == ("3", "3", 100, False)
    assert model.warnings == ("1 tool deferred by the budget: the agent can load it on request.",)
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tokens": 1, "on_exceed": "warn"}}
    )
    model = look(operator).model
    assert (model.most_tokens, model.over) == ("1", True)
    assert model.warnings == ("Over budget: this agent only gets a warning.",)


def test_a_section_is_marked_by_what_stands_over_it(operator: Client, belt: None) -> None:
    entries.change(OPERATOR, "toolkit", "issues", {"blocked": True})
    entries.change(OPERATOR, "plugin", "acme.clock", {"active": False, "blocked": True})
    found = acting.sections(look(operator))
    assert [mark.word for mark in found["toolkit-issues"].marks] == ["blocked for everyone"]
    assert [mark.word for mark in found["plugin-acme.clock"].marks] == ["off", "blocked for everyone"]
    models.Plugin.objects.filter(name="acme.clock").update(status="failed")
    assert acting.sections(look(operator))["plugin-acme.clock"].marks[0].word == "failed"


def test_an_empty_catalog_says_what_to_do(operator: Client) -> None:
    factories.agent("ada")
    assert "No tools yet" in operator.get(acting.ACCESS).content.decode()


def test_no_two_parts_of_the_page_share_an_id(operator: Client, belt: None) -> None:
    tools = list(models.Tool.objects.all())
    for key in ("dev", "dev-tools", "dev-title", "dev-counts"):
        factories.toolkit(key, *tools)
    html = operator.get(acting.ACCESS).content.decode()
    ids = [part.partition('"')[0] for part in html.split(' id="')[1:]]
    assert sorted(set(ids)) == sorted(ids)


def test_it_asks_the_database_the_same_few_questions_however_many_tools_there_are(
    operator: Client, belt: None, more_tools: Any
) -> None:
    more_tools(44)
    acting.switch(operator, "issues", "false", "true")  # there is a last change to look up
    counts = []
    for on, was in (("true", "false"), ("false", "true")):
        look(operator)
        looking = acting.queries(lambda: look(operator))
        flipping = acting.queries(functools.partial(acting.switch, operator, "issues", on, was))
        counts.append((looking, flipping))
        more_tools(450)
    assert counts[0] == counts[1]
    assert counts[0] <= (13, 30)


def test_the_first_view_of_the_demo_is_light(operator: Client) -> None:
    fast_fixtures.demo()
    sizes = {}
    for key in models.Agent.objects.values_list("key", flat=True):
        answer = operator.get(f"/agents/{key}/")
        assert answer.status_code == 200
        sizes[key] = len(gzip.compress(answer.content))
    assert len(sizes) >= 8
    assert {key: size for key, size in sizes.items() if size > 60_000} == {}
