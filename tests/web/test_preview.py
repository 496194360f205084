"""Tests of the Preview page: what the model receives, and why a tool is on or off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.core.rules import reasons
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.surfaces import rendering
from toolbelt.store import clock, context_use
from toolbelt.testing import OPERATOR
from toolbelt.web import conversation_preview

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

PREVIEW = "/agents/ada/preview/"
META = ["list_toolkits", "load_tools", "search_tools", "unload_tools"]


def open_page(browser: Client, address: str = PREVIEW, **query: Any) -> Any:
    """Return the view model of the page."""
    return browser.get(address, query).context["page"]


def load(session: str, request: str | None = None) -> None:
    calls.run("ada", "load_tools", {"toolkit": "research"}, session=session, request_id=request)


def keys(page: Any) -> list[str]:
    """Return the keys of the tools that a page shows."""
    return [tool.key for tool in page.now.tools]


def test_tools_are_listed_with_reasons_in_the_order_sent_to_the_model(operator: Client) -> None:
    page = open_page(operator, session="s9")
    assert [tool.key for tool in page.now.tools] == surfaces.ask("ada", "s9").content()["active_tools"]
    given = {tool.key: reasons.explain(tool.decision) for tool in page.now.tools if tool.decision}
    assert given == {
        "clock__now": "its override is on",
        "github__issue_read": "toolkit issues is on",
        "github__issue_write": "toolkit issues is on",
        "shell": "on by default",
    }
    assert [tool.key for tool in page.now.tools if not tool.decision] == META
    assert dashboard.text(operator.get(PREVIEW, {"session": "s9"})).count("not counted") == len(META)
    assert (page.now.model.spent.tools, page.agent.active) == (4, "4")
    assert f"revision {page.revision}" in dashboard.text(operator.get(PREVIEW))


def test_a_message_shows_its_directive(operator: Client) -> None:
    page = open_page(operator, message="There is a bug.")
    assert page.now.model.directive.tools == ("github__issue_write",)
    assert "must call one" not in dashboard.text(operator.get(PREVIEW, {"message": "There is a bug."}))
    assert "No directive." in dashboard.text(operator.get(PREVIEW, {"message": "hello"}))


def test_tools_loaded_in_a_session_appear_from_the_next_request(operator: Client) -> None:
    load("s1", "r1")
    assert "papers" not in [tool.key for tool in open_page(operator).now.tools]
    assert "papers" not in [tool.key for tool in open_page(operator, session="s1", request="r1").now.tools]
    page = open_page(operator, session="s1", request="r2")
    papers = next(tool.decision for tool in page.now.tools if tool.key == "papers")
    assert reasons.explain(papers) == "toolkit research was loaded in this session"
    assert [stored.session.key for stored in page.sessions] == ["s1"]
    assert page.agent.active == "4", "the header counts tools outside of sessions"


def test_a_subagent_gets_the_tools_of_its_kind(operator: Client) -> None:
    assert [tool.key for tool in open_page(operator, subagent="explore").now.tools if tool.decision] == []
    assert keys(open_page(operator, subagent="gardener")) == keys(open_page(operator))


def test_policy_sections_are_shown_in_prompt_order(operator: Client) -> None:
    page = open_page(operator, view="policy")
    assert [(section.toolkit or section.tool, section.text) for section, _ in page.now.model.policy] == [
        ("issues", "Read before you write."),
        ("releases", "Ask first: github__issue_read."),
    ]
    assert not page.now.tools


@pytest.mark.parametrize("form", rendering.FORMATS)
def test_the_json_is_exactly_what_is_sent_to_the_provider(operator: Client, form: str) -> None:
    page = open_page(operator, view="json", format=form, message="a bug")
    assert json.loads(page.now.sent.text) == rendering.render(surfaces.ask("ada", message="a bug"), form)
    assert [choice.value for choice in page.formats if choice.chosen] == [form]
    assert not page.now.sent.label.islower(), "every format has a display name"


def test_a_surface_that_a_provider_rejects_is_reported_instead_of_json(
    operator: Client, more_tools: Any
) -> None:
    more_tools(144)
    entries.change(
        OPERATOR.replace(confirm=True),
        "agent",
        "ada",
        {"tools_config": {f"more_{6 + n}": True for n in range(0, 144, 12)}},
    )
    page = open_page(operator, view="json", format="openai_chat")
    assert page.now.sent.text == ""
    assert "128" in page.now.sent.problems[0]
    assert "OpenAI Chat would reject this" in dashboard.text(
        operator.get(PREVIEW, {"view": "json", "format": "openai_chat"})
    )
    assert open_page(operator, view="json", format="anthropic").now.sent.text


def test_why_shows_every_rule_and_marks_the_deciding_rule(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    why = open_page(operator, view="why", tool="github__issue_read").now.why
    assert (why.decision.state, reasons.explain(why.decision)) == ("denied", "toolkit issues is off")
    assert [step.rule_number for step in why.steps] == list(range(1, 12))
    (decisive,) = [step for step in why.steps if step.rule_number == why.decisive]
    assert decisive.rule_number == 3
    assert (decisive.answer.state, reasons.explain(decisive.answer)) == ("denied", "toolkit issues is off")
    assert why.steps[-1].answer.state == "dormant", "later rules are evaluated, too"


def test_why_explains_a_tool_deferred_by_the_budget(operator: Client) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 3, "on_exceed": "defer"}}
    )
    why = open_page(operator, view="why", tool="shell").now.why
    decision = why.decision
    assert (decision.state, reasons.explain(decision)) == ("discoverable", "deferred by the agent's budget")
    (decisive,) = [step for step in why.steps if step.rule_number == why.decisive]
    assert decisive.rule == "Do the tools that are on fit the agent's budget?"


def test_why_applies_to_the_chosen_session(operator: Client) -> None:
    load("s1")
    assert open_page(operator, view="why", tool="papers").now.why.decision.state == "discoverable"
    assert open_page(operator, view="why", tool="papers", session="s1").now.why.decision.state == "active"
    address = f"{open_page(operator, session='s1').why_url}&tool=papers"
    assert address in operator.get(PREVIEW, {"session": "s1"}).content.decode().replace("&amp;", "&")
    assert (
        reasons.explain(open_page(operator, address).now.why.decision)
        == "toolkit research was loaded in this session"
    )


def test_an_unknown_tool_suggests_the_nearest_name(operator: Client) -> None:
    page = open_page(operator, view="why", tool="paper")
    assert page.now.why.problem == "There is no tool named 'paper'. Did you mean papers?"
    assert "shell" in page.known


def test_an_invalid_session_is_reported_and_the_page_still_renders(operator: Client) -> None:
    response = operator.get(PREVIEW, {"session": "a\x7fb"})
    page = response.context["page"]
    assert response.status_code == 200
    assert "session: an id is 1 to 200 characters" in page.problem
    assert len(page.now.tools) == 4


@pytest.mark.parametrize("query", [{"view": "nonsense"}, {"format": "nonsense"}, {"session": "x" * 201}])
def test_invalid_query_parameters_are_ignored(operator: Client, query: dict[str, str]) -> None:
    assert keys(open_page(operator, **query)) == keys(open_page(operator))


def test_an_htmx_request_returns_only_the_results(operator: Client) -> None:
    html = dashboard.text(operator.get(PREVIEW, {"message": "a bug"}, headers=dashboard.HTMX))
    assert "<html" not in html
    assert "<textarea" not in html
    assert '<div id="ask-directive" hx-swap-oob="innerHTML">' in html
    assert "github__issue_write" in html


def test_texts_from_upstream_servers_are_escaped(operator: Client) -> None:
    factories.tool("evil", description="</code><script>alert(1)</script>", default_on=True)
    html = operator.get(PREVIEW, {"view": "json"}).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_an_unknown_agent_is_not_found(operator: Client) -> None:
    assert operator.get("/agents/nobody/preview/").status_code == 404


def test_a_viewer_may_preview(viewer: Client) -> None:
    response = viewer.get(PREVIEW, {"view": "why", "tool": "shell"})
    assert reasons.explain(response.context["page"].now.why.decision) == "on by default"
    assert "view only" in response.content.decode()


@pytest.mark.parametrize("view", ["tools", "policy", "json", "why"])
def test_query_count_does_not_grow_with_the_catalog(operator: Client, more_tools: Any, view: str) -> None:
    query = {"view": view, "tool": "shell", "format": "anthropic", "session": "s1"}
    open_page(operator, **query)
    of_few = dashboard.count_queries(lambda: open_page(operator, **query))
    more_tools(48)
    load("s1")
    open_page(operator, **query)
    assert dashboard.count_queries(lambda: open_page(operator, **query)) == of_few <= 18


def test_an_earlier_version_is_shown_next_to_the_current_version(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry().pk
    dashboard.switch(operator, "releases", "true", "unset", confirm="yes")
    page = operator.get("/agents/ada/preview/", {"at": entry}).context["page"]
    assert page.past.words == "after olive turned off issues"
    assert [tool.key for tool in page.past.tools if tool.decision] == ["clock__now", "shell"]
    assert {tool.key: tool.mark for tool in page.now.tools if tool.decision} == {
        "clock__now": "",
        "github__merge": "added since",
        "shell": "",
    }
    assert page.past.compare_url == f"/compare/?a=ada%40{entry}&b=ada"
    chosen = next(choice.label for choice in page.moments if choice.chosen)
    assert chosen.startswith("after olive turned off issues")
    html = dashboard.text(operator.get("/agents/ada/preview/", {"at": entry}))
    assert "Computed with today's catalog" in html


@pytest.mark.parametrize("view", ["policy", "json", "why"])
def test_each_view_of_an_earlier_version_is_shown(operator: Client, view: str) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry().pk
    dashboard.switch(operator, "issues", "true", "false")
    query: dict[str, Any] = {"at": entry, "view": view, "tool": "github__issue_write"}
    response = operator.get("/agents/ada/preview/", query, headers=dashboard.HTMX)
    past = response.context["page"].past
    shown = {
        "policy": [section.text for section, _ in past.model.policy] == ["You cannot see issues."],
        "json": past.sent and "github__issue_write" not in past.sent.text,
        "why": past.why and reasons.explain(past.why.decision) == "toolkit issues is off",
    }
    assert shown[view]
    assert 'id="provider-json"' not in response.content.decode() or view == "json"


@pytest.mark.parametrize("at", ["soon", "999999", "2001-01-01T00:00", "-1", "9" * 30])
def test_an_unknown_or_invalid_time_is_reported(operator: Client, at: str) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    page = operator.get("/agents/ada/preview/", {"at": at}).context["page"]
    if at.startswith("2001"):
        assert page.past.words == "before its first recorded change"
    else:
        assert "Cannot show the earlier version" in page.problem
        assert page.past is None


def test_saved_context_is_shown_in_total_and_by_day(operator: Client) -> None:
    page = open_page(operator)
    assert (page.saved.total, page.saved.days) == (None, ())
    assert " context: " in dashboard.text(operator.get(PREVIEW))

    today = clock.now().date()
    context_use.add_all([context_use.Use("ada", today, 3, 80, 1000), context_use.Use("bob", today, 1, 1, 1)])

    html = dashboard.text(operator.get(PREVIEW))
    assert "92 % less context: ~80 instead of ~1.0k tokens" in html
    assert "in the last 30 days, 3 answers" in html
    assert '<td class="number">3</td><td class="number">80</td><td class="number">1,000</td>' in html


def test_an_agent_that_received_more_context_saved_none(operator: Client) -> None:
    context_use.add_all([context_use.Use("ada", clock.now().date(), 1, 1200, 1000)])

    assert "No less context: ~1.2k instead of ~1.0k tokens" in dashboard.text(operator.get(PREVIEW))


def test_a_conversation_shows_its_start_and_what_each_later_change_appends(operator: Client) -> None:
    switches.flip(OPERATOR, "ada", "issues", False)
    switches.flip(OPERATOR, "ada", "research", True)
    page = open_page(operator, view="conversation")
    start, *changes = page.conversation.parts
    assert json.loads(start.text)["system"]
    assert "github__issue_read" in [tool["name"] for tool in json.loads(start.text)["tools"]]
    off, on = (json.loads(part.text)["messages"][0]["content"] for part in changes[-2:])
    assert {block["type"] for block in off} == {"tool_removal", "text"}
    assert {block["type"] for block in on} == {"tool_addition", "text"}
    assert changes[-1].title.endswith("turned on research")
    assert changes[-1].tokens > 0
    html = dashboard.text(operator.get(PREVIEW, {"view": "conversation"}))
    assert "A new tool is defined where it was added; one that is turned off is withdrawn." in html
    assert "Calls of it are refused immediately." in html


@pytest.mark.parametrize("model", conversation_preview.MODELS)
def test_every_model_has_a_preview_of_its_conversation(operator: Client, model: str) -> None:
    switches.flip(OPERATOR, "ada", "issues", False)
    page = open_page(operator, view="conversation", model=model)
    assert not page.conversation.problem
    assert "github__issue_read" in page.conversation.parts[-1].text
    assert [choice.value for choice in page.models if choice.chosen] == [model]


def test_a_chosen_version_is_the_start_of_the_conversation(operator: Client) -> None:
    first = switches.flip(OPERATOR, "ada", "issues", False)
    switches.flip(OPERATOR, "ada", "research", True)
    agents.edit(OPERATOR, "ada", {"title": "Ada"})
    page = open_page(operator, view="conversation", at=str(first.entry))
    start, on, titled = page.conversation.parts
    assert "github__issue_read" not in [tool["name"] for tool in json.loads(start.text)["tools"]]
    assert "research" in on.title
    assert titled.text == ""
    assert page.past is None
