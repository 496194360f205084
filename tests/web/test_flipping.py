"""Tests of setting switches and overrides: what is stored, logged and shown, and what the agent gets."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.runtime import surfaces
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def active(agent: str = "ada") -> set[str]:
    """Return the names of the tools that the agent gets."""
    return {definition.name for definition in surfaces.ask(agent).tools}


def change_agent(agent: str = "ada", **changes: Any) -> None:
    """Change fields of an agent's settings."""
    entries.change(OPERATOR.replace(confirm=True), "agent", agent, changes)


@pytest.mark.parametrize("htmx", [True, False])
def test_turning_a_toolkit_off_removes_its_tools_and_policy(operator: Client, htmx: bool) -> None:
    before = surfaces.ask("ada")
    response = dashboard.switch(operator, "issues", "false", "true", htmx=htmx)
    assert response.status_code == (200 if htmx else 303)
    after = surfaces.ask("ada")
    assert {d.name for d in before.tools} - {d.name for d in after.tools} == {
        "github__issue_read",
        "github__issue_write",
    }
    assert "Read before you write." in before.policy.text
    assert "Read before you write." not in after.policy.text
    assert "You cannot see issues." in after.policy.text


def test_an_htmx_flip_returns_only_what_changed(operator: Client) -> None:
    response = dashboard.switch(
        operator, "issues", "false", "true", tools="github__issue_read", sections="toolkit-issues"
    )
    page = response.context["page"]
    assert (page.agent.active, page.model.spent.tools) == ("2", 2)
    effect = page.model.effect
    assert effect.tools == (4, 2)
    assert effect.notes == (
        "replaces policy issues with its text for when it is off",
        "removes policy releases",
    )
    assert page.notice.text == "Issues and reviews `issues` is off for ada."
    assert page.notice.detail.startswith("−2 tools, −")
    assert page.notice.undo == dashboard.latest_entry().pk
    assert [section.id for section in page.sections] == ["toolkit-issues"]
    assert [(row.key, row.state, row.reason) for row in page.rows] == [
        ("github__issue_read", "denied", "toolkit issues is off")
    ]
    html = dashboard.text(response)
    assert "<form" not in html.partition('id="toast"')[0].partition('id="agent-facts"')[0]
    assert "<html" not in html
    assert 'role="switch"' not in html


def test_without_htmx_a_flip_redirects_and_its_notice_is_shown_once(operator: Client) -> None:
    here = "/agents/ada/?q=issue#toolkit-issues"
    response = dashboard.switch(operator, "issues", "false", "true", htmx=False, next=here)
    assert (response.status_code, response.headers["Location"]) == (303, here)
    page = operator.get("/agents/ada/").context["page"]
    assert page.notice.text == "Issues and reviews `issues` is off for ada."
    assert page.model.effect.tools == (4, 2)
    assert "replaces policy issues with its text for when it is off" in page.model.effect.notes
    assert operator.get("/agents/ada/").context["page"].notice is None


@pytest.mark.parametrize(
    ("on", "was", "now", "message"),
    [
        ("false", "true", False, "Issues and reviews `issues` is off for ada."),
        ("unset", "true", None, "Issues and reviews `issues` is reset to default for ada."),
    ],
)
def test_a_switch_has_three_states(
    operator: Client, on: str, was: str, now: bool | None, message: str
) -> None:
    response = dashboard.switch(operator, "issues", on, was)
    assert response.context["page"].notice.text == message
    assert dashboard.stored_agent().switches.get("issues") is now


@pytest.mark.parametrize(
    ("tool", "on", "was", "now", "message"),
    [
        ("papers", "true", "unset", True, "papers is on for ada."),
        ("clock__now", "false", "true", False, "clock__now is off for ada."),
        ("clock__now", "unset", "true", None, "clock__now is reset to default for ada."),
    ],
)
def test_an_override_has_three_states(
    operator: Client, tool: str, on: str, was: str, now: bool | None, message: str
) -> None:
    response = dashboard.override(operator, tool, on, was)
    assert response.context["page"].notice.text == message
    assert dashboard.stored_agent().overrides.get(tool) is now
    assert (tool in active()) is (now is True)


def test_an_ineffective_override_shows_the_reason(operator: Client) -> None:
    dashboard.override(operator, "github__issue_read", "true", "unset")
    response = dashboard.switch(operator, "issues", "false", "true", tools="github__issue_read")
    row = response.context["page"].rows[0]
    assert (row.state, row.stored) == ("denied", "true")
    assert row.reason == "toolkit issues is off (stored: On)"


def test_a_flip_without_effect_is_reported_and_not_logged(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "true", "true")
    assert (
        response.context["page"].notice.text
        == "No changes: Issues and reviews `issues` is on for ada already."
    )
    assert not models.AuditEntry.objects.exists()


@pytest.mark.parametrize("htmx", [True, False])
def test_a_change_based_on_a_stale_state_is_refused(operator: Client, htmx: bool) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry()
    response = dashboard.switch(operator, "issues", "unset", "true", htmx=htmx)
    assert response.status_code == (409 if htmx else 303)
    page = response.context["page"] if htmx else operator.get("/agents/ada/").context["page"]
    assert page.notice.tone == "refused"
    assert "you saw on, it is off now" in page.notice.text
    assert page.notice.undo is None
    assert dashboard.stored_agent().switches["issues"] is False
    assert dashboard.latest_entry() == entry


@pytest.mark.parametrize("htmx", [True, False])
def test_turning_on_a_destructive_tool_requires_confirmation(operator: Client, htmx: bool) -> None:
    confirmation = dashboard.switch(operator, "releases", "true", "unset", htmx=htmx, next="/agents/ada/?q=x")
    assert confirmation.status_code == 200
    html = dashboard.text(confirmation)
    assert "Turn on releases for ada?" in html
    assert "Enables destructive tools: github__merge." in html
    assert "releases" not in dashboard.stored_agent().switches
    question = confirmation.context["confirmation"]
    assert question.dangerous
    assert question.back == "/agents/ada/?q=x"
    fields = dict(question.fields)
    assert fields == {"on": "true", "was": "unset", "next": "/agents/ada/?q=x", "confirm": "yes"}
    done = dashboard.post(operator, question.action, htmx=htmx, **fields, reason="Release day.")
    assert done.status_code == (200 if htmx else 303)
    assert "github__merge" in active()
    assert dashboard.latest_entry().reason == "Release day."


def test_the_confirmation_shows_the_differences(operator: Client) -> None:
    question = dashboard.switch(operator, "releases", "true", "unset").context["confirmation"]
    assert tuple(question.effect.tools) == (4, 5)
    assert question.effect.notes == (
        "updates policy releases for the tools that are on",
        "no live conversations; the tools and the system text change for new ones",
    )
    assert [(d.label, d.before, d.after) for d in question.differences] == [("github__merge", "Not on", "On")]


def test_a_protected_agent_requires_confirmation_even_without_effect(operator: Client) -> None:
    question = dashboard.switch(operator, "research", "false", "unset", agent="bob").context["confirmation"]
    assert question.reasons == ("bob is protected.",)
    assert question.effect.notes == ("no longer on request: papers",)
    assert not question.dangerous
    dashboard.switch(operator, "research", "false", "unset", agent="bob", confirm="yes")
    assert dashboard.stored_agent("bob").switches == {"research": False}


@pytest.mark.parametrize(
    "address",
    ["/agents/nobody/switches/issues/", "/agents/ada/switches/nothing/", "/agents/ada/overrides/nothing/"],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_flipping_an_unknown_agent_toolkit_or_tool_is_not_found(
    operator: Client, address: str, htmx: bool
) -> None:
    assert dashboard.post(operator, address, htmx=htmx, on="true", was="unset").status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"on": "true"},
        {"on": "maybe", "was": "true"},
        {"on": "true", "was": "1"},
        {"on": "false", "was": "true", "reason": "x" * 501},
        {"on": "false", "was": "true", "reason": "\0"},
    ],
)
def test_an_invalid_form_is_rejected_with_a_notice(operator: Client, fields: dict[str, Any]) -> None:
    response = dashboard.post(operator, "/agents/ada/switches/issues/", **fields)
    assert response.status_code == 422
    assert response.context["page"].notice.text.startswith("Not changed: ")
    redirect = dashboard.post(operator, "/agents/ada/switches/issues/", htmx=False, **fields)
    assert redirect.status_code == 303
    assert operator.get("/agents/ada/").context["page"].notice.tone == "refused"
    assert dashboard.stored_agent().switches["issues"] is True


def test_unknown_displayed_tools_and_sections_are_ignored(operator: Client) -> None:
    response = dashboard.switch(
        operator, "issues", "false", "true", tools="'] nothing papers", sections="<b> toolkit-x plugin-github"
    )
    page = response.context["page"]
    assert [row.key for row in page.rows] == ["papers"]
    assert not page.sections


def test_flipping_for_a_deleted_agent_redirects_to_the_list(operator: Client) -> None:
    response = dashboard.post(operator, "/agents/gone/switches/issues/", on="nonsense")
    assert (response.status_code, response.headers["HX-Redirect"]) == (200, "/agents/")


def test_a_trial_message_is_kept_after_a_flip(operator: Client) -> None:
    response = dashboard.override(operator, "papers", "true", "unset", message="there is a bug")
    assert response.context["page"].model.directive.tools == ("github__issue_write",)
    gone = dashboard.switch(operator, "issues", "false", "true", message="there is a bug")
    assert gone.context["page"].model.directive.tools == ()


def test_partial_responses_state_their_revision(operator: Client) -> None:
    first = dashboard.switch(operator, "issues", "false", "true").headers["X-Toolbelt-As-Of"].split()
    second = (
        dashboard.switch(operator, "issues", "true", "false", cells="issues")
        .headers["X-Toolbelt-As-Of"]
        .split()
    )
    assert first[0] == second[0] == "ada"
    assert int(first[1]) < int(second[1])


def test_an_invalid_agent_key_is_quoted_in_the_revision_header(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "perhaps", "true", agent="a%0Ab", cells="issues")
    assert response.status_code == 422
    assert response.headers["X-Toolbelt-As-Of"].startswith("a%0Ab ")
