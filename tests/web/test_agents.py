"""Tests of the list of agents and of its query count."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR

pytestmark = pytest.mark.django_db


def open_page(browser: Client, **query: str) -> Any:
    """Return the view model of the list."""
    return browser.get("/agents/", query).context["page"]


def keys(page: Any) -> list[str]:
    return [agent.key for agent in page.agents]


@pytest.fixture
def five_agents(belt: None) -> None:
    """Store three more agents of other kinds, so that there are five."""
    factories.agent("cyd", position=2, loadout="full", title="The one with everything")
    factories.agent("dot", position=3, kind="explore", max_tools=1)
    factories.agent("Eve", position=4, kind="plan", role="Plans the day")


def test_each_row_shows_the_agents_loadout_tools_and_last_change(operator: Client, belt: None) -> None:
    ada, bob = open_page(operator).agents
    assert (ada.key, ada.role, ada.profile, ada.protected) == (
        "ada",
        "Keeps the project tidy",
        "no loadout",
        False,
    )
    assert (ada.active, ada.total, ada.percent, ada.last_change) == ("4", "6", 67, None)
    assert (bob.profile, bob.protected) == ("kind plan → developer", True)
    dashboard.switch(operator, "issues", "false", "true")
    ada = open_page(operator).agents[0]
    assert (ada.active, ada.last_change.who, ada.last_change.action) == (
        "2",
        "olive",
        "turned off Issues and reviews",
    )


def test_agents_over_or_deferred_by_budget_are_marked(operator: Client, belt: None) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 3, "on_exceed": "warn"}}
    )
    assert open_page(operator).agents[0].problem == "over budget"
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 3, "on_exceed": "defer"}}
    )
    assert open_page(operator).agents[0].problem == "deferred by budget"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["ada", "bob", "cyd", "dot", "Eve"]),
        ({"q": "TIDY"}, ["ada"]),
        ({"q": "everything"}, ["cyd"]),
        ({"kind": "plan"}, ["bob", "Eve"]),
        ({"loadout": "developer"}, ["bob", "Eve"]),
        ({"loadout": "full"}, ["cyd"]),
        ({"kind": "plan", "q": "day"}, ["Eve"]),
        ({"kind": "gardener"}, []),
        ({"sort": "agent"}, ["ada", "bob", "cyd", "dot", "Eve"]),
        ({"sort": "-agent"}, ["Eve", "dot", "cyd", "bob", "ada"]),
        ({"sort": "-tools"}, ["ada", "bob", "cyd", "Eve", "dot"]),
        ({"sort": "nonsense"}, ["ada", "bob", "cyd", "dot", "Eve"]),
        ({"q": "x" * 201}, []),
    ],
)
def test_the_list_is_filtered_and_sorted_by_query_parameters(
    operator: Client, five_agents: None, query: dict[str, str], expected: list[str]
) -> None:
    assert keys(open_page(operator, **query)) == expected


def test_column_headings_toggle_the_sort_order_and_keep_the_filter(
    operator: Client, five_agents: None
) -> None:
    column = open_page(operator, kind="plan").columns[0]
    assert (column.order, column.url) == ("", "/agents/?kind=plan&sort=agent")
    column = open_page(operator, kind="plan", sort="agent").columns[0]
    assert (column.order, column.url) == ("ascending", "/agents/?kind=plan&sort=-agent")


def test_an_htmx_filter_request_returns_only_the_table_and_count(operator: Client, five_agents: None) -> None:
    html = dashboard.text(operator.get("/agents/", {"q": "day"}, headers=dashboard.HTMX))
    assert html.startswith('<div id="agents">')
    assert "<html" not in html
    assert '<p id="matches" hx-swap-oob="innerHTML">1 agent, 6 tools in the catalog</p>' in html


def test_a_filter_without_matches_shows_an_empty_state(operator: Client, belt: None) -> None:
    assert "No matching agents" in operator.get("/agents/", {"q": "nobody"}).content.decode()


def test_an_empty_list_links_to_agent_creation_if_permitted(operator: Client, admin_client: Client) -> None:
    html = operator.get("/agents/").content.decode()
    assert "No agents yet" in html
    assert "/new/agent/" not in html
    assert "/new/agent/" in admin_client.get("/agents/").content.decode()


def test_query_count_does_not_grow_with_the_number_of_agents(operator: Client, belt: None) -> None:
    factories.agent("cyd")
    open_page(operator)
    of_three = dashboard.count_queries(lambda: open_page(operator))
    for number in range(9):
        factories.agent(f"agent-{number}")
    open_page(operator)
    assert len(open_page(operator).agents) == 12
    assert dashboard.count_queries(lambda: open_page(operator)) == of_three <= 12
