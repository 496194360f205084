"""Tests of an agent's History page and of undoing changes there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

HISTORY = "/agents/ada/history/"


def open_page(browser: Client, address: str = HISTORY, **query: Any) -> Any:
    return browser.get(address, query).context["page"]


def listed(page: Any) -> list[Any]:
    return [entry for day in page.days for entry in day.entries]


@pytest.fixture
def past_changes(operator: Client, belt: None) -> None:
    """Store five changes, three of them to ada."""
    entries.change(OPERATOR, "toolkit", "research", {"title": "Reading"})
    agents.equip(OPERATOR.replace(confirm=True), "bob", "research")
    entries.change(
        OPERATOR.replace(reason="Named."), "agent", "ada", {"title": "Ada", "budget": {"max_tools": 9}}
    )
    dashboard.switch(operator, "issues", "false", "true")
    dashboard.override(operator, "papers", "true", "unset")


@pytest.mark.usefixtures("past_changes")
def test_only_changes_of_this_agent_are_listed_with_their_differences(operator: Client) -> None:
    page = open_page(operator)
    assert [f"{entry.who} {entry.action} {entry.subject}" for entry in listed(page)] == [
        "olive turned on the tool papers",
        "olive turned off issues",
        "test changed agent ada",
    ]
    assert page.matches == "3 changes, newest first"
    html = dashboard.text(operator.get("/agents/ada/history/"))
    assert 'for <a href="/agents/ada/">' not in html, "the agent is in the heading"
    changed = listed(page)[2]
    assert {d.label: (d.before, d.after) for d in changed.differences} == {
        "title": ("not set", "Ada"),
        "budget": ("not set", '{"max_tools": 9}'),
    }
    assert changed.reason == "Named."


@pytest.mark.usefixtures("past_changes")
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"person": "olive"}, 2),
        ({"action": "switch.set"}, 1),
        ({"key": "papers"}, 1),
        ({"key": "papers", "person": "test"}, 0),
        ({"agent": "bob"}, 3),
        ({"older": "nonsense"}, 3),
    ],
)
def test_the_history_is_filtered_by_person_action_and_key(
    operator: Client, query: dict[str, str], count: int
) -> None:
    assert len(listed(open_page(operator, **query))) == count


@pytest.mark.usefixtures("past_changes")
def test_filter_choices_are_limited_to_this_agents_changes(operator: Client) -> None:
    page = open_page(operator, key="papers")
    assert [choice.label for choice in page.keys] == ["Any toolkit or tool", "issues", "papers"]
    assert [choice.value for choice in page.keys if choice.chosen] == ["papers"]
    assert [choice.value for choice in page.people] == ["", "olive", "test"]
    assert "agent.equip" not in [choice.value for choice in page.actions]


@pytest.mark.usefixtures("past_changes")
def test_undoing_redirects_back_to_the_history(operator: Client) -> None:
    entry = listed(open_page(operator, person="olive"))[0]
    response = dashboard.post(
        operator, f"/audit/{entry.id}/undo/", htmx=False, next="/agents/ada/history/?person=olive"
    )
    assert (response.status_code, response.headers["Location"]) == (303, f"{HISTORY}?person=olive")
    page = open_page(operator, person="olive")
    assert page.notice.text == "Undone: olive turned on the tool papers."
    assert "papers" not in dashboard.stored_agent().overrides
    assert listed(page)[1].undone.startswith("undone by olive")


@pytest.mark.usefixtures("past_changes")
def test_an_htmx_filter_request_returns_only_the_log_and_count(operator: Client) -> None:
    html = dashboard.text(operator.get(HISTORY, {"key": "papers"}, headers=dashboard.HTMX))
    assert html.startswith('<div id="log">')
    assert "<html" not in html
    assert "1 change, newest first" in html


@pytest.mark.usefixtures("past_changes")
def test_a_viewer_is_not_offered_undo(viewer: Client) -> None:
    assert len(listed(open_page(viewer))) == 3
    assert not any(entry.undoable for entry in listed(open_page(viewer)))


def test_an_empty_history_and_a_filter_without_matches_show_an_empty_state(operator: Client) -> None:
    assert "No changes yet" in operator.get(HISTORY).content.decode()
    assert "No matching changes" in operator.get(HISTORY, {"key": "papers"}).content.decode()


def test_an_unknown_agent_is_not_found(operator: Client) -> None:
    assert operator.get("/agents/nobody/history/").status_code == 404


@pytest.mark.usefixtures("past_changes")
def test_query_count_does_not_grow_with_the_length_of_the_history(operator: Client) -> None:
    of_three = dashboard.count_queries(lambda: open_page(operator))
    for on, was in (("true", "false"), ("false", "true")) * 6:
        dashboard.switch(operator, "issues", on, was)
    assert len(listed(open_page(operator))) == 15
    assert dashboard.count_queries(lambda: open_page(operator)) == of_three <= 22
