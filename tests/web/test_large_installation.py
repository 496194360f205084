"""Tests that pages ask few queries and show a part where there are more agents and tools than fit."""

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
from tests.web import acting
from toolbelt import models
from toolbelt.control import guards
from toolbelt.control.access import access_index, bulk, switches
from toolbelt.control.reports import attention, queries
from toolbelt.core import budgets, reasons, resolution, surface
from toolbelt.web import matrix
from toolbelt.web.access import views as access
from toolbelt.web.kit import paging

pytestmark = pytest.mark.django_db

AGENTS, TOOLS = 70, 900
MAX_QUERIES = 20


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Fill the database, once for all tests of this module."""
    with fast_fixtures.shared(django_db_blocker):
        made.fill(agents=AGENTS, tools=TOOLS, changes=200, calls=300)
        yield


@pytest.fixture
def olive(filled: None, db: None) -> Client:
    """Return the browser of the superuser."""
    browser = Client()
    browser.force_login(
        get_user_model().objects.get(username="olive"), "django.contrib.auth.backends.ModelBackend"
    )
    return browser


def look(browser: Client, to: str, **said: Any) -> Any:
    return browser.get(to, said).context["page"]


def follow(browser: Client, url: str) -> Any:
    return browser.get(url).context["page"]


def test_no_page_asks_many_queries(
    olive: Client, django_assert_max_num_queries: DjangoAssertNumQueries, subtests: pytest.Subtests
) -> None:
    olive.get("/")
    for name, to in bench_thousand.pages().items():
        with subtests.test(name), django_assert_max_num_queries(MAX_QUERIES):
            assert olive.get(to).status_code == 200


def test_the_tools_that_were_not_called_are_found_in_few_queries(
    olive: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    olive.get("/")
    with django_assert_max_num_queries(MAX_QUERIES):
        assert look(olive, "/tools/", called="no").tools


def test_what_the_lists_count_is_what_each_agent_is_resolved_to(olive: Client) -> None:
    found = access_index.load()
    stored = found.catalog
    users: dict[str, set[str]] = {key: set() for key in stored.toolkits}
    for own in found.agents:
        resolved = budgets.resolve(
            resolution.Snapshot(catalog=stored, agent=own.agent, kind_loadouts=agents_kinds())
        )
        assert own.active == resolved.active.keys()
        assert own.inventory.spent == resolved.spent
        assert own.inventory.deferred == resolved.deferred.keys()
        for key in stored.tools:
            assert own.decision(key) == resolved.decision(key)
        for key, toolkit in stored.toolkits.items():
            if any(member.tool in resolved.active for member in toolkit.members):
                users[key].add(own.agent.key)
    assert {key: set(found.users.get(key, ())) for key in stored.toolkits} == users
    every = [line for page in pages_of(olive, "/agents/") for line in page.agents]
    shown = {line.key: line.active.replace(",", "") for line in every}
    assert shown == {own.agent.key: str(len(own.active)) for own in found.agents}


def agents_kinds() -> Any:
    from toolbelt import conf

    return conf.KIND_LOADOUTS


def pages_of(browser: Client, to: str) -> list[Any]:
    """Return the pages of a list, from one to the next by its link."""
    found = [look(browser, to)]
    while found[-1].pages.older_url:
        found.append(follow(browser, found[-1].pages.older_url))
    return found


def keys_of(page: Any, items: str) -> list[str]:
    """Return the keys of the items that a page lists; a line of the list of tools names its tool."""
    return [getattr(item, "tool", item).key for item in getattr(page, items)]


@pytest.mark.parametrize(
    ("to", "items", "count"),
    [
        ("/agents/", "agents", lambda: models.Agent.objects.filter(archived=False).count()),
        ("/toolkits/", "toolkits", models.Toolkit.objects.count),
        ("/tools/", "tools", models.Tool.objects.count),
    ],
)
def test_a_list_is_walked_from_page_to_page_and_back(olive: Client, to: str, items: str, count: Any) -> None:
    walked = pages_of(olive, to)
    keys = [key for page in walked for key in keys_of(page, items)]
    assert len(keys) == len(set(keys)) == count()
    assert all(len(getattr(page, items)) <= paging.AT_ONCE for page in walked)
    if len(walked) > 1:
        back = follow(olive, walked[1].pages.newer_url)
        assert keys_of(back, items) == keys_of(walked[0], items)


@pytest.mark.parametrize("offset", ["10000", "-1", "x", "", "99999999999999"])
def test_a_place_that_there_is_not_shows_a_page_of_a_list(olive: Client, offset: str) -> None:
    page = look(olive, "/agents/", offset=offset)
    assert page.agents
    assert bool(page.pages.newer_url) is (offset == "10000")


@pytest.mark.parametrize("offset", ["10000", "x"])
def test_a_place_that_there_is_not_shows_every_page_all_the_same(olive: Client, offset: str) -> None:
    cells = look(olive, "/matrix/", offset=offset, agents_offset=offset)
    assert cells.rows
    assert cells.agents
    assert look(olive, f"/tools/{made.tool_name(5)}/", offset=offset, others_offset=offset).others
    assert look(olive, f"/toolkits/{made.TOOLKIT}/", offset=offset).cells
    assert look(olive, f"/agents/{made.AGENT}/", offset=offset).agent
    assert look(olive, "/tokens/", offset=offset, gone_offset=offset).tokens


def test_filters_and_order_stay_from_page_to_page(olive: Client) -> None:
    page = look(olive, "/agents/", q="agent", sort="-tools")
    asked = parse_qs(urlsplit(page.pages.older_url).query)
    assert asked == {"q": ["agent"], "sort": ["-tools"], "offset": ["50"]}
    counts = [int(line.active.replace(",", "")) for line in page.agents]
    rest = [int(line.active.replace(",", "")) for line in follow(olive, page.pages.older_url).agents]
    assert [*counts, *rest] == sorted([*counts, *rest], reverse=True)
    # Another order, and another filter, begin at the beginning.
    assert all("offset" not in column.url for column in follow(olive, page.pages.older_url).columns)


def test_typing_a_filter_gets_the_first_page_of_what_fits(olive: Client) -> None:
    html = acting.text(olive.get("/agents/", {"q": "agent"}, headers=acting.HTMX))
    assert "<html" not in html
    assert 'href="/agents/?q=agent&amp;offset=50" rel="next"' in html


def test_the_matrix_is_walked_in_both_directions(olive: Client) -> None:
    first = look(olive, "/matrix/")
    assert (len(first.rows), len(first.agents)) == (
        min(matrix.TOOLKITS_AT_ONCE, models.Toolkit.objects.count()),
        matrix.AGENTS_AT_ONCE,
    )
    right = follow(olive, first.agents_pages.older_url)
    assert [row.toolkit.key for row in right.rows] == [row.toolkit.key for row in first.rows]
    assert not {one.key for one in right.agents} & {one.key for one in first.agents}
    # Each direction keeps the other, and what is looked for.
    narrowed = look(olive, "/matrix/", q="kit", agents="agent-00", agents_offset=matrix.AGENTS_AT_ONCE)
    assert narrowed.agents
    kept = parse_qs(urlsplit(narrowed.agents_pages.newer_url).query)
    assert kept == {"q": ["kit"], "agents": ["agent-00"]}


def test_the_matrix_finds_agents_without_javascript_too(olive: Client) -> None:
    html = acting.text(olive.get("/matrix/"))
    assert re.search(r'<input[^>]*name="agents"', html)
    page = look(olive, "/matrix/", agents="agent-0012")
    assert [agent.key for agent in page.agents] == ["agent-0012"]
    assert all(len(row.cells) == 1 for row in page.rows)
    in_place = acting.text(olive.get("/matrix/", {"agents": "nobody"}, headers=acting.HTMX))
    assert "No matching toolkits or agents" in in_place
    assert "<html" not in in_place


def test_a_matrix_cell_says_what_its_agent_has_of_the_toolkit(olive: Client) -> None:
    found = access_index.load()
    accesses = {access.agent.key: access for access in found.agents}
    for row in look(olive, "/matrix/").rows:
        kit = found.catalog.toolkits[row.toolkit.key]
        there = {member.tool for member in kit.members}
        for cell in row.cells:
            active = len(there & accesses[cell.agent].active)
            assert not active or cell.short == f"{active}/{len(there)}"


def test_whom_a_toolkit_concerns_stands_first_and_others_are_found(olive: Client) -> None:
    found = access_index.load()
    page = look(olive, f"/toolkits/{made.TOOLKIT}/")
    concerned = {*found.users.get(made.TOOLKIT, ()), *found.switches.get(made.TOOLKIT, {})}
    assert {cell.agent for cell in page.cells[: len(concerned)]} == concerned
    sought = look(olive, f"/toolkits/{made.TOOLKIT}/", agents="agent-0061")
    assert [cell.agent for cell in sought.cells] == ["agent-0061"]
    assert sought.find.query == "agent-0061"


def test_who_has_a_tool_is_counted_over_all_and_shown_in_part(olive: Client) -> None:
    key = made.tool_name(400 if models.Tool.objects.filter(key=made.tool_name(400)).exists() else 5)
    having = sum(key in access.active for access in access_index.load().agents)
    page = look(olive, f"/tools/{key}/")
    assert page.users == f"{having} of {len(access_index.load().agents)}"
    on_request = int((page.on_request or "0").replace(",", ""))
    assert page.others_total == len(access_index.load().agents) - having - on_request
    assert len(page.others) == min(paging.AT_ONCE, page.others_total)
    assert look(olive, f"/tools/{key}/", agents="nobody").others_total == 0


def test_a_section_that_an_address_opens_is_on_the_page_that_it_shows(olive: Client) -> None:
    for number in range(access.SECTIONS_AT_ONCE):
        factories.toolkit(f"late-{number}", position=10_000 + number)
    page = look(olive, f"/agents/{made.AGENT}/", open="toolkit-late-59")
    assert acting.sections(page)["toolkit-late-59"].open
    assert all(group.open for group in page.groups if group.state == "off")
    first = look(olive, f"/agents/{made.AGENT}/")
    assert "toolkit-late-59" not in acting.sections(first)
    assert len(acting.sections(first)) == access.SECTIONS_AT_ONCE


def test_overrides_that_do_nothing_are_those_that_deciding_finds(olive: Client) -> None:
    told = {
        (one.agent.key, stale.tool): stale.why
        for one in queries.summaries()
        for stale in attention._stale(one)
    }
    assert told
    for one in queries.summaries():
        agent, stored = one.agent, one.access.catalog
        with_all = one.access.resolved
        without = attention._without_overrides(one).context
        for key, on in agent.overrides.items():
            now, else_ = with_all.decision(key), resolution.decide(without, key)
            defers = agent.budget is not None and agent.budget.on_exceed == "defer"
            why = None
            if stored.tools[key].retired:
                why = "retired"
            elif on and now.state != "active":
                why = "without effect"
            elif (on and else_.state == "active" and not defers) or (not on and else_.state == "denied"):
                why = "superfluous"
            assert told.get((agent.key, key)) == why
            if why == "superfluous":
                stale = attention.Stale(key, on, "superfluous")
                assert attention.explain_stale(one, stale) == reasons.explain(else_)


def test_a_bulk_change_is_confirmed_without_building_a_surface(
    olive: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    build = surface.of

    def counted(resolved: budgets.Resolution, snapshot: resolution.Snapshot, *rest: Any, **named: Any) -> Any:
        built.append(snapshot.agent.key)
        return build(resolved, snapshot, *rest, **named)

    monkeypatch.setattr(surface, "of", counted)
    agents = models.Agent.objects.filter(archived=False).count()
    answer = olive.get("/bulk/agents/", {"key": made.TOOLKIT, "set": "toolkits-true"})
    assert f"{agents} agents" in answer.context["confirmation"].title
    assert built == []


@pytest.mark.parametrize("on", [True, False, None])
def test_a_bulk_change_shows_what_it_does_to_the_surface_of_each_agent(
    olive: Client, on: bool | None
) -> None:
    found = access_index.load()
    agents = {access.agent.key: access.agent for access in found.agents}
    keys = [made.TOOLKIT, "kit-009", "kit-019", "kit-039", made.tool_name(5), made.tool_name(7)]
    plan = bulk.plan(list(agents), keys, on)
    assert plan.refused or not on
    assert {part.effect.policy for part in plan.parts} != {()}
    for part in plan.parts:
        agent = agents[part.agent]
        wanted = switches.with_settings(found.catalog, agent, dict.fromkeys(part.before, on))
        exact = guards.effect(found.catalog, agent, wanted)
        assert part.effect == exact
        assert part.reasons == tuple(guards.confirmation_reasons(found.catalog, agent, wanted, on, exact))
        spent = (guards.resolved(found.catalog, one).spent for one in (agent, wanted))
        assert ("The budget of" in part.refused) is budgets.refuses(*spent)


def test_all_that_was_not_called_is_walked_in_parts(olive: Client) -> None:
    found = access_index.load()
    called = set(models.CallRecord.objects.values_list("agent", "tool"))
    idle = {
        tool for access in found.agents for tool in access.active if (access.agent.key, tool) not in called
    }
    walked = [look(olive, "/calls/", view="unused", since="2000-01-01").unused]
    while walked[-1].pages.older_url:
        walked.append(follow(olive, walked[-1].pages.older_url).unused)
    tools = [tool.tool for part in walked for tool in part.tools]
    assert len(tools) == len(set(tools))
    assert set(tools) == idle
    assert all(len(part.tools) <= 30 for part in walked)
    behind = look(olive, "/calls/", view="unused", offset=10**6, since="2000-01-01").unused
    assert behind.tools == walked[-1].tools
