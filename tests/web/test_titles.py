"""Tests that pages name entries by their title, with the key beside it."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


@pytest.fixture(autouse=True)
def title(belt: None) -> None:
    """Give ada a title."""
    entries.change(OPERATOR, "agent", "ada", {"title": "Ada <Lovelace>"})


@pytest.mark.parametrize(
    "address", ["/", "/agents/", "/audit/", "/toolkits/issues/", "/tools/github__issue_read/", "/matrix/"]
)
def test_a_page_names_an_agent_by_its_title_and_escapes_it(operator: Client, address: str) -> None:
    dashboard.switch(operator, "issues", "false", "true")

    html = operator.get(address).content.decode()

    assert ">Ada &lt;Lovelace&gt;</a>" in html
    assert "Ada <Lovelace>" not in html
    assert ">ada</a>" not in html


@pytest.mark.parametrize("address", ["/audit/", "/toolkits/issues/"])
def test_the_key_is_beside_the_title_only_if_they_differ(operator: Client, address: str) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    html = operator.get(address).content.decode()
    assert '<code class="quiet">ada</code>' in html
    assert '<code class="quiet">bob</code>' not in html


@pytest.mark.parametrize("address", ["/audit/", "/compare/", "/matrix/", "/tokens/", "/new/agent/"])
def test_selects_offer_agents_by_title_with_their_key(admin_client: Client, address: str) -> None:
    assert "Ada &lt;Lovelace&gt; (ada)" in admin_client.get(address).content.decode()


def test_titles_of_all_agents_are_read_once_for_a_page(operator: Client) -> None:
    of_two = dashboard.count_queries(lambda: operator.get("/audit/"))
    for number in range(5):
        entries.create(OPERATOR, "agent", {"key": f"agent-{number}", "title": f"Agent {number}"})
    assert dashboard.count_queries(lambda: operator.get("/audit/")) == of_two


def test_agents_with_the_same_title_are_compared_with_their_keys(operator: Client) -> None:
    entries.change(OPERATOR, "agent", "bob", {"title": "Ada <Lovelace>"})
    page = operator.get("/compare/?a=ada&b=bob").context["page"]
    assert (page.comparison.a.name, page.comparison.b.name) == (
        "Ada <Lovelace> (ada)",
        "Ada <Lovelace> (bob)",
    )
    page = operator.get("/compare/?a=ada&b=ada").context["page"]
    assert page.comparison.a.name == "Ada <Lovelace>"


def test_the_audit_log_offers_archived_agents(operator: Client) -> None:
    agents.archive(OPERATOR.replace(confirm=True), "ada", True)
    assert "Ada &lt;Lovelace&gt; (ada)" in operator.get("/audit/").content.decode()
