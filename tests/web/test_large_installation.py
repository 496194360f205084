"""Tests that pages of a large installation take few queries and are paginated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker

from scripts import bench_thousand
from scripts import large_installation as made
from tests import factories, fast_fixtures
from tests.web import dashboard
from toolbelt import models
from toolbelt.control import guards
from toolbelt.control.access import access_index, bulk, switches
from toolbelt.control.reports import attention, queries
from toolbelt.core import surface
from toolbelt.core.rules import budgets, reasons, resolution
from toolbelt.web import matrix
from toolbelt.web.access import views as access
from toolbelt.web.kit import paging

pytestmark = pytest.mark.django_db

AGENTS, TOOLS = 70, 900
MAX_QUERIES = 22


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Fill the database once for all tests of this module."""
    with fast_fixtures.shared(django_db_blocker):
        made.fill(agents=AGENTS, tools=TOOLS, changes=200, calls=300)
        yield


@pytest.fixture
def superuser(filled: None, db: None) -> Client:
    """Return the browser of the superuser."""
    browser = Client()
    browser.force_login(
        get_user_model().objects.get(username="olive"), "django.contrib.auth.backends.ModelBackend"
    )
    return browser


def open_page(browser: Client, to: str, **query: Any) -> Any:
    return browser.get(to, query).context["page"]


def follow(browser: Client, url: str) -> Any:
    return browser.get(url).context["page"]


def test_every_page_takes_few_queries(
    superuser: Client, django_assert_max_num_queries: DjangoAssertNumQueries, subtests: pytest.Subtests
) -> None:
    superuser.get("/")
    for name, to in bench_thousand.pages().items():
        with subtests.test(name), django_assert_max_num_queries(MAX_QUERIES):
            assert superuser.get(to).status_code == 200


def test_unused_tools_are_found_in_few_queries(
    superuser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    superuser.get("/")
    with django_assert_max_num_queries(MAX_QUERIES):
        assert open_page(superuser, "/tools/", called="no").tools


def test_counts_in_lists_match_each_agents_resolution(superuser: Client) -> None:
    index = access_index.load()
    stored = index.catalog
    users: dict[str, set[str]] = {key: set() for key in stored.toolkits}
    for own in index.agents:
        resolved = budgets.resolve(
            resolution.Snapshot(catalog=stored, agent=own.agent, kind_loadouts=kind_loadouts())
        )
        assert own.active == resolved.active.keys()
        assert own.inventory.spent == resolved.spent
        assert own.inventory.deferred == resolved.deferred.keys()
        for key in stored.tools:
            assert own.decision(key) == resolved.decision(key)
        for key, toolkit in stored.toolkits.items():
            if any(member.tool in resolved.active for member in toolkit.members):
                users[key].add(own.agent.key)
    assert {key: set(index.users.get(key, ())) for key in stored.toolkits} == users
    every = [line for page in pages_of(superuser, "/agents/") for line in page.agents]
    shown = {line.key: line.active.replace(",", "") for line in every}
    assert shown == {own.agent.key: str(len(own.active)) for own in index.agents}


def kind_loadouts() -> Any:
    from toolbelt import conf

    return conf.KIND_LOADOUTS


def pages_of(browser: Client, to: str) -> list[Any]:
    """Return the view models of all pages of a list, following its links."""
    pages = [open_page(browser, to)]
    while pages[-1].pages.older_url:
        pages.append(follow(browser, pages[-1].pages.older_url))
    return pages


def keys_of(page: Any, items: str) -> list[str]:
    """Return the keys of the listed items; rows of the tool list wrap their tool."""
    return [getattr(item, "tool", item).key for item in getattr(page, items)]


@pytest.mark.parametrize(
    ("to", "items", "count"),
    [
        ("/agents/", "agents", lambda: models.Agent.objects.filter(archived=False).count()),
        ("/toolkits/", "toolkits", models.Toolkit.objects.count),
        ("/tools/", "tools", models.Tool.objects.count),
    ],
)
def test_a_list_is_paginated_forwards_and_backwards(
    superuser: Client, to: str, items: str, count: Any
) -> None:
    walked = pages_of(superuser, to)
    keys = [key for page in walked for key in keys_of(page, items)]
    assert len(keys) == len(set(keys)) == count()
    assert all(len(getattr(page, items)) <= paging.PAGE_SIZE for page in walked)
    if len(walked) > 1:
        back = follow(superuser, walked[1].pages.newer_url)
        assert keys_of(back, items) == keys_of(walked[0], items)


@pytest.mark.parametrize("offset", ["10000", "-1", "x", "", "99999999999999"])
def test_an_invalid_offset_shows_a_page_of_the_list(superuser: Client, offset: str) -> None:
    page = open_page(superuser, "/agents/", offset=offset)
    assert page.agents
    assert bool(page.pages.newer_url) is (offset == "10000")


@pytest.mark.parametrize("offset", ["10000", "x"])
def test_an_invalid_offset_breaks_no_page(superuser: Client, offset: str) -> None:
    cells = open_page(superuser, "/matrix/", offset=offset, agents_offset=offset)
    assert cells.rows
    assert cells.agents
    assert open_page(superuser, f"/tools/{made.tool_name(5)}/", offset=offset, others_offset=offset).others
    assert open_page(superuser, f"/toolkits/{made.TOOLKIT}/", offset=offset).cells
    assert open_page(superuser, f"/agents/{made.AGENT}/", offset=offset).agent
    assert open_page(superuser, "/tokens/", offset=offset, gone_offset=offset).tokens


def test_pagination_keeps_filters_and_sort_order(superuser: Client) -> None:
    page = open_page(superuser, "/agents/", q="agent", sort="-tools")
    parameters = parse_qs(urlsplit(page.pages.older_url).query)
    assert parameters == {"q": ["agent"], "sort": ["-tools"], "offset": ["50"]}
    counts = [int(line.active.replace(",", "")) for line in page.agents]
    rest = [int(line.active.replace(",", "")) for line in follow(superuser, page.pages.older_url).agents]
    assert [*counts, *rest] == sorted([*counts, *rest], reverse=True)
    # Changing the sort order starts at the first page again.
    assert all("offset" not in column.url for column in follow(superuser, page.pages.older_url).columns)


def test_an_htmx_filter_request_returns_the_first_page_of_matches(superuser: Client) -> None:
    html = dashboard.text(superuser.get("/agents/", {"q": "agent"}, headers=dashboard.HTMX))
    assert "<html" not in html
    assert 'href="/agents/?q=agent&amp;offset=50" rel="next"' in html


def test_the_matrix_is_paginated_in_both_directions(superuser: Client) -> None:
    first = open_page(superuser, "/matrix/")
    assert (len(first.rows), len(first.agents)) == (
        min(matrix.TOOLKITS_AT_ONCE, models.Toolkit.objects.count()),
        matrix.AGENTS_AT_ONCE,
    )
    right = follow(superuser, first.agents_pages.older_url)
    assert [toolkit.key for toolkit, _ in right.rows] == [toolkit.key for toolkit, _ in first.rows]
    assert not {agent.key for agent in right.agents} & {agent.key for agent in first.agents}
    # Links of each direction keep the filters.
    narrowed = open_page(
        superuser, "/matrix/", q="kit", agents="agent-00", agents_offset=matrix.AGENTS_AT_ONCE
    )
    assert narrowed.agents
    parameters = parse_qs(urlsplit(narrowed.agents_pages.newer_url).query)
    assert parameters == {"q": ["kit"], "agents": ["agent-00"]}


def test_the_matrix_filters_agents_without_javascript(superuser: Client) -> None:
    html = dashboard.text(superuser.get("/matrix/"))
    assert re.search(r'<input[^>]*name="agents"', html)
    page = open_page(superuser, "/matrix/", agents="agent-0012")
    assert [agent.key for agent in page.agents] == ["agent-0012"]
    assert all(len(cells) == 1 for _, cells in page.rows)
    in_place = dashboard.text(superuser.get("/matrix/", {"agents": "nobody"}, headers=dashboard.HTMX))
    assert "No matching toolkits or agents" in in_place
    assert "<html" not in in_place


def test_a_matrix_cell_counts_the_agents_active_tools_of_the_toolkit(superuser: Client) -> None:
    index = access_index.load()
    accesses = {access.agent.key: access for access in index.agents}
    for toolkit, cells in open_page(superuser, "/matrix/").rows:
        kit = index.catalog.toolkits[toolkit.key]
        there = {member.tool for member in kit.members}
        for cell in cells:
            active = len(there & accesses[cell.agent].active)
            assert not active or cell.short == f"{active}/{len(there)}"


def test_a_toolkits_agents_are_listed_first_and_others_are_searchable(superuser: Client) -> None:
    index = access_index.load()
    page = open_page(superuser, f"/toolkits/{made.TOOLKIT}/")
    concerned = {*index.users.get(made.TOOLKIT, ()), *index.switches.get(made.TOOLKIT, {})}
    assert {cell.agent for cell in page.cells[: len(concerned)]} == concerned
    sought = open_page(superuser, f"/toolkits/{made.TOOLKIT}/", agents="agent-0061")
    assert [cell.agent for cell in sought.cells] == ["agent-0061"]
    assert sought.find.query == "agent-0061"


def test_a_tools_agents_are_counted_in_full_and_listed_in_part(superuser: Client) -> None:
    key = made.tool_name(400 if models.Tool.objects.filter(key=made.tool_name(400)).exists() else 5)
    having = sum(key in access.active for access in access_index.load().agents)
    page = open_page(superuser, f"/tools/{key}/")
    assert (page.on, page.agents_total) == (having, len(access_index.load().agents))
    assert page.others_total == page.agents_total - page.on - page.on_request
    assert len(page.others) == min(paging.PAGE_SIZE, page.others_total)
    assert open_page(superuser, f"/tools/{key}/", agents="nobody").others_total == 0


def test_a_section_opened_by_the_url_is_on_the_page(superuser: Client) -> None:
    for number in range(access.SECTIONS_AT_ONCE):
        factories.toolkit(f"late-{number}", position=10_000 + number)
    page = open_page(superuser, f"/agents/{made.AGENT}/", open="toolkit-late-59")
    assert dashboard.sections(page)["toolkit-late-59"].open
    assert all(group.open for group in page.groups if group.state == "off")
    first = open_page(superuser, f"/agents/{made.AGENT}/")
    assert "toolkit-late-59" not in dashboard.sections(first)
    assert len(dashboard.sections(first)) == access.SECTIONS_AT_ONCE


def test_reported_ineffective_overrides_match_the_decisions(superuser: Client) -> None:
    reported = {
        (summary.agent.key, stale.tool): stale.why
        for summary in queries.summaries()
        for stale in attention._ineffective_overrides(summary)
    }
    assert reported
    for summary in queries.summaries():
        agent, stored = summary.agent, summary.access.catalog
        with_all = summary.access.resolved
        without = attention._without_overrides(summary).context
        for key, on in agent.overrides.items():
            now, else_ = with_all.decision(key), resolution.decide(without, key)
            defers = agent.budget is not None and agent.budget.on_exceed == "defer"
            why = None
            if stored.tools[key].retired:
                why = "retired"
            elif on and now.state != "active":
                why = "without effect"
            elif (on and else_.state == "active" and not defers) or (not on and else_.state == "denied"):
                why = "redundant"
            assert reported.get((agent.key, key)) == why
            if why == "redundant":
                stale = attention.IneffectiveOverride(key, on, "redundant")
                assert attention.explain_ineffective(summary, stale) == reasons.explain(else_)


def test_a_bulk_change_is_confirmed_without_building_a_surface(
    superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    build = surface.of

    def counted(resolved: budgets.Resolution, snapshot: resolution.Snapshot, *rest: Any, **named: Any) -> Any:
        built.append(snapshot.agent.key)
        return build(resolved, snapshot, *rest, **named)

    monkeypatch.setattr(surface, "of", counted)
    agents = models.Agent.objects.filter(archived=False).count()
    response = superuser.get("/bulk/agents/", {"key": made.TOOLKIT, "set": "toolkits-true"})
    assert f"{agents} agents" in response.context["confirmation"].title
    assert built == []


@pytest.mark.parametrize("on", [True, False, None])
def test_a_bulk_change_shows_its_exact_effect_on_each_agent(superuser: Client, on: bool | None) -> None:
    index = access_index.load()
    agents = {access.agent.key: access.agent for access in index.agents}
    keys = [made.TOOLKIT, "kit-009", "kit-019", "kit-039", made.tool_name(5), made.tool_name(7)]
    plan = bulk.plan(list(agents), keys, on)
    assert plan.refused or not on
    assert {part.effect.policy for part in plan.parts} != {()}
    for part in plan.parts:
        agent = agents[part.agent]
        changed_agent = switches.with_settings(index.catalog, agent, dict.fromkeys(part.before, on))
        exact = guards.effect(index.catalog, agent, changed_agent)
        assert part.effect == exact
        assert part.reasons == tuple(
            guards.confirmation_reasons(index.catalog, agent, changed_agent, on, exact)
        )
        spent = (guards.resolved(index.catalog, either).spent for either in (agent, changed_agent))
        assert ("The budget of" in part.refused) is budgets.refuses(*spent)


def test_unused_tools_are_paginated_completely(superuser: Client) -> None:
    index = access_index.load()
    called = set(models.CallRecord.objects.values_list("agent", "tool"))
    idle = {
        tool for access in index.agents for tool in access.active if (access.agent.key, tool) not in called
    }
    walked = [open_page(superuser, "/calls/", view="unused", since="2000-01-01").unused]
    while walked[-1].pages.older_url:
        walked.append(follow(superuser, walked[-1].pages.older_url).unused)
    tools = [unused.tool.key for part in walked for unused, _ in part.tools]
    assert len(tools) == len(set(tools))
    assert set(tools) == idle
    assert all(len(part.tools) <= 30 for part in walked)
    behind = open_page(superuser, "/calls/", view="unused", offset=10**6, since="2000-01-01").unused
    assert behind.tools == walked[-1].tools
