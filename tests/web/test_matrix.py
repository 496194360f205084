"""Tests of the matrix of agents and toolkits, and of its query count."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def open_page(browser: Client, **query: str) -> Any:
    return browser.get("/matrix/", query).context["page"]


def test_each_toolkit_has_a_cell_for_each_agent(viewer: Client) -> None:
    page = open_page(viewer)
    assert [toolkit.key for toolkit, _ in page.rows] == ["issues", "releases", "research"]
    assert [agent.key for agent in page.agents] == ["ada", "bob"]
    ada, bob = page.rows[0][1]
    assert (ada.switch.stored, ada.short, bob.switch.stored) == ("true", "2/2", "unset")
    html = dashboard.text(viewer.get("/matrix/"))
    assert '<a href="/matrix/?agent=ada">ada <span>1 set</span></a>' in html
    assert '<a href="/matrix/?agent=bob">bob <span>0 set</span></a>' in html
    assert page.matches == "3 toolkits, 2 agents"


@pytest.mark.parametrize(
    ("query", "rows", "agents", "is_one_agent"),
    [
        ({"q": "REVIEWS"}, 1, 2, False),
        ({"q": "nothing"}, 0, 2, False),
        ({"agent": "bob"}, 3, 1, True),
        ({"agent": "nobody"}, 3, 2, False),
        ({"agent": "ada", "q": "re"}, 3, 1, True),
    ],
)
def test_the_matrix_is_filtered_by_query_parameters(
    viewer: Client, query: dict[str, str], rows: int, agents: int, is_one_agent: bool
) -> None:
    page = open_page(viewer, **query)
    assert (len(page.rows), len(page.agents), page.is_single) == (rows, agents, is_one_agent)


def test_cells_are_forms_for_operators_and_text_for_viewers(viewer: Client, operator: Client) -> None:
    assert 'action="/agents/bob/switches/releases/"' in dashboard.text(operator.get("/matrix/"))
    html = dashboard.text(viewer.get("/matrix/"))
    assert 'role="switch"' not in html
    assert "<strong>On</strong>" in html


def test_a_flip_updates_all_displayed_cells_of_the_agent(operator: Client) -> None:
    response = dashboard.switch(
        operator, "issues", "false", "true", cells="issues releases gone", next="/matrix/"
    )
    html = dashboard.text(response)
    # Both toolkits are updated, because they share a tool.
    assert 'id="at:ada:issues:state"' in html
    assert 'id="at:ada:releases:state"' in html
    assert "research" not in html
    assert "bob" not in html


def test_an_htmx_filter_request_returns_only_the_table_and_count(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/matrix/", {"q": "issues"}, headers=dashboard.HTMX))
    assert '<span id="matches" hx-swap-oob="innerHTML">1 toolkit, 2 agents</span>' in html
    assert "<html" not in html
    assert "No matching toolkits or agents" in dashboard.text(viewer.get("/matrix/", {"q": "nothing"}))


def test_query_count_does_not_grow_with_toolkits_and_agents(operator: Client, more_tools: Any) -> None:
    open_page(operator)
    before = dashboard.count_queries(lambda: open_page(operator))
    more_tools(36)
    for number in range(6):
        factories.agent(f"agent-{number}")
    open_page(operator)
    assert dashboard.count_queries(lambda: open_page(operator)) == before <= 12
