"""Tests of the list of rules, a rule's page and its editor, and of what Access says about rules."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests.web import asking, dashboard, editor_forms
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

OLIVE = writing.by("olive", via="command")
PAGE, EDIT, SAVE = "/rules/papers-only/", "/rules/papers-only/edit/", "/rules/papers-only/save/"
ASKING = "/rules/over-500/"
NEW, CREATE = "/new/rule/", "/new/rule/save/"
WHEN = {"query": {"pattern": "secret"}}
RULE: dict[str, Any] = {
    "key": "papers-only",
    "effect": "deny",
    "agents": ["ada"],
    "tools": ["papers"],
    "when": WHEN,
    "reason": "Search for something else.",
}


@pytest.fixture
def rule(belt: None) -> None:
    entries.put(OLIVE, "gate_rule", RULE)


@pytest.fixture
def editor(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user with all permissions for rules."""
    codenames = [f"{act}_gaterule" for act in ("add", "change", "delete")]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=codenames))
    return operator


def open_page(browser: Client, address: str = PAGE) -> Any:
    return browser.get(address).context["page"]


def test_an_empty_list_says_what_rules_are_for(viewer: Client) -> None:
    assert "No rules yet" in dashboard.text(viewer.get("/rules/"))


def test_the_list_and_the_page_say_what_a_rule_does_and_whom_it_concerns(viewer: Client, rule: None) -> None:
    (line,) = open_page(viewer, "/rules/").rules
    assert (line.words, line.agents, line.tools) == (
        "denies when query matches secret",
        ("ada",),
        ("papers",),
    )
    page = viewer.get(PAGE)
    html = dashboard.text(page)
    assert "Denies when query matches secret" in html
    assert "Search for something else." in html
    assert "view only" in html
    assert "/edit/" not in html
    assert page.context["page"].conditions == (("When", json.dumps(WHEN, indent=2)),)
    assert viewer.get("/rules/nothing/").status_code == 404


def test_a_page_says_what_a_rule_was_written_for_before_the_names(viewer: Client, rule: None) -> None:
    entries.put(
        OLIVE, "gate_rule", RULE | {"kinds": ["review"], "tools": ["papers", "pap*"], "risks": ["writes"]}
    )
    page = open_page(viewer)
    assert page.patterns_of_agents == ("kind review",)
    assert page.patterns_of_tools == ("pap*", "tools that change something")


def test_a_rule_is_created_after_whom_it_concerns_was_shown_and_removed_with_undo(editor: Client) -> None:
    assert editor_forms.submit(editor, NEW, CREATE).context["page"].form.problems["key"] == "Enter a key."
    response = editor_forms.submit(
        editor,
        NEW,
        CREATE,
        key="stop",
        tool_names="github__*",
        model_reads="No.",
        unless='{"repo": {"const": "toy"}}',
        htmx=True,
    )
    question = response.context["page"]
    assert question.title == "Create rule stop?"
    assert question.rule_effect.agents == ("ada", "bob")
    assert question.rule_effect.tools == ("github__issue_read", "github__issue_write", "github__merge")
    assert "It concerns calls of 3 tools by 2 agents" in editor_forms.visible_text(response)
    assert not models.GateRule.objects.exists()

    assert editor_forms.resubmit(editor, response, CREATE).headers["Location"] == "/rules/stop/"

    assert entries.read("gate_rule", "stop") == {
        "key": "stop",
        "effect": "deny",
        "tools": ["github__*"],
        "unless": {"repo": {"const": "toy"}},
        "reason": "No.",
    }
    response = editor_forms.submit(editor, "/rules/stop/", "/rules/stop/remove/")
    assert response.context["page"].title == "Remove rule stop?"
    response = editor_forms.resubmit(editor, response, "/rules/stop/remove/")
    assert response.headers["Location"] == "/rules/"
    undo = open_page(editor, "/rules/").notice.undo
    assert undo == dashboard.latest_entry().pk
    assert editor.post(f"/audit/{undo}/undo/").status_code == 303
    assert entries.read("gate_rule", "stop")["tools"] == ["github__*"]


def test_only_what_was_changed_is_written(editor: Client, rule: None) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, observed="yes", ends="2031-05-04T16:00:00+02:00")
    assert editor_forms.resubmit(editor, response, SAVE).status_code == 303
    stored = entries.read("gate_rule", "papers-only")
    assert stored == {**RULE, "observed": True, "ends": "2031-05-04T14:00:00Z"}
    logged = dashboard.latest_entry()
    assert (logged.action, sorted(logged.after)) == ("gate_rule.change", ["ends", "observed"])
    # Nothing else: the condition as it was typed is the same.
    response = editor_forms.submit(editor, EDIT, SAVE)
    assert "already up to date" in open_page(editor).notice.text
    assert response.status_code == 303


@pytest.mark.parametrize(
    ("typed", "field", "message"),
    [
        ({"when": "{"}, "when", "This is not JSON: line 1, column 2"),
        ({"when": "[1]"}, "when", "'when' must be a mapping"),
        ({"when": '{"a": {"const": 1}, "a": {}}'}, "when", "the key 'a' is repeated"),
        ({"when": '{"a": {"minimun": 1}}'}, "when", "'minimun' is not a keyword"),
        ({"tool_names": "paper"}, "tool_names", "Did you mean papers?"),
        ({"agents": "adda"}, "agents", "There is no agent named 'adda'. Did you mean ada?"),
        ({"ends": "tomorrow"}, "ends", "'ends' must be a time with its zone"),
    ],
)
def test_problems_are_shown_at_their_field(
    editor: Client, rule: None, typed: dict[str, Any], field: str, message: str
) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, **typed)
    assert response.status_code == 422
    assert message in " ".join(response.context["page"].form.errors[field])
    assert entries.read("gate_rule", "papers-only") == RULE


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"when": {"qury": True}}, "No tool that it concerns lists an argument 'qury', so it never applies"),
        (
            {"when": {"query": {"minimum": 5}}},
            "papers takes a string as 'query', and the condition is about a number",
        ),
        ({"when": {"query": {"const": 5}}}, "it applies to all of its calls with one."),
        (
            {"effect": "allow", "when": {"query": {"type": "integer"}}},
            "it applies to none of its calls with one.",
        ),
        ({"effect": "allow"}, "It changes nothing yet"),
        ({"tools": ["nothing*"]}, "It concerns no tool yet."),
        ({"agents": None, "sub_apps": None, "kinds": ["explore"]}, "It concerns no agent yet."),
    ],
)
def test_what_protects_nothing_is_said(
    viewer: Client, rule: None, changes: dict[str, Any], note: str
) -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    entries.change(OLIVE.replace(confirm=True), "tool", "papers", {"input_schema": schema})
    assert open_page(viewer).line.notes == ()
    entries.change(OLIVE, "gate_rule", "papers-only", changes)
    assert note in " ".join(open_page(viewer).line.notes)


def test_access_says_which_rules_concern_a_tool(viewer: Client, rule: None) -> None:
    html = dashboard.text(viewer.get("/agents/ada/?q=papers"))
    assert "denies when query matches secret" in html
    assert "denies when" not in dashboard.text(viewer.get("/agents/bob/?q=papers"))
    why = dashboard.text(viewer.get("/agents/ada/why/papers/"))
    assert "At the gate:" in why
    assert PAGE in why


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"query": "a secret"}', "secret: <strong>applies</strong>"),
        ('{"query": "the weather"}', "secret: <strong>does not apply</strong>"),
        ('{"query": 5}', "cannot be known for these arguments, so it applies"),
        ("[5]", "The arguments are a JSON object"),
        ('{"query": "a", "query": "b"}', "The arguments cannot be read"),
    ],
)
def test_arguments_are_tried_beside_the_reason(
    viewer: Client, rule: None, arguments: str, answer: str
) -> None:
    for headers in ({}, dashboard.HTMX):
        page = viewer.get("/agents/ada/why/papers/", {"arguments": arguments}, headers=headers)
        assert answer in dashboard.text(page)


def test_query_counts_do_not_grow_with_rules(viewer: Client, rule: None) -> None:
    def cost() -> list[int]:
        for address in ("/rules/", PAGE):
            viewer.get(address)
        return [dashboard.count_queries(partial(viewer.get, address)) for address in ("/rules/", PAGE)]

    few = cost()
    for number in range(8):
        entries.put(OLIVE, "gate_rule", {**RULE, "key": f"r{number}"})
    assert cost() == few
    assert max(few) <= 12


def test_a_rule_that_asks_has_figures(viewer: Client) -> None:
    entries.put(OLIVE, "gate_rule", asking.RULE)
    for number in range(3):
        call = asking.ask({"amount": 700 + number}, ago=60)
        call_approvals.approve(OLIVE, call.key, call.shown)
    call_approvals.reject(OLIVE, asking.ask({"amount": 800}, ago=3000).key)
    asking.ask({"amount": 900}, ago=7200)
    asking.ask({"amount": 950})
    asking.ask({"amount": 960}, rule="not-over-500")
    asks = open_page(viewer, ASKING).asks
    figures = asks.figures
    assert (figures.asked, figures.approved, figures.rejected, figures.expired) == (6, 3, 1, 1)
    assert (asks.median_wait, asks.advice) == ("60 s", "")
    assert (asks.people, asks.expires) == ("1 person", "1 h, the installation’s setting")
    assert dashboard.count_queries(lambda: viewer.get(ASKING)) < 20


def test_a_rule_whose_questions_are_all_approved_is_questioned(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries.put(OLIVE, "gate_rule", asking.RULE)
    monkeypatch.setattr("toolbelt.web.rules.MANY", 2)
    for advice in ("", "All 2 calls"):
        call = asking.ask({"amount": 700})
        call_approvals.approve(OLIVE, call.key, call.shown)
        assert open_page(viewer, ASKING).asks.advice.startswith(advice)
        assert bool(advice) is bool(open_page(viewer, ASKING).asks.advice)


def test_access_says_when_a_call_is_asked_about(viewer: Client) -> None:
    entries.put(OLIVE, "gate_rule", {**asking.RULE, "tools": ["shell"]})
    assert "asks when amount &gt; 500" in dashboard.text(viewer.get("/agents/ada/?q=shell"))


def test_the_editor_offers_to_ask_with_its_approvals_and_its_time(editor: Client) -> None:
    response = editor_forms.submit(
        editor, NEW, CREATE, key="asks", tool_names="papers", effect="ask", approvals="2", expires="600"
    )
    assert editor_forms.resubmit(editor, response, CREATE).status_code == 303
    stored = entries.read("gate_rule", "asks")
    assert (stored["effect"], stored["approvals"], stored["expires"]) == ("ask", 2, 600)
    asks = open_page(editor, "/rules/asks/").asks
    assert (asks.people, asks.expires, asks.figures.asked) == ("2 people", "10 min", 0)
    assert "Nothing in 30 days." in dashboard.text(editor.get("/rules/asks/"))


LIMIT = {"calls": 2, "per": "10m", "of": "session"}
PAST: dict[str, Any] = {**RULE, "labels": ["private"], "without": ["checked"], "more_than": LIMIT}


def test_a_rule_says_what_must_come_before_and_what_is_counted(viewer: Client) -> None:
    entries.put(OLIVE, "gate_rule", PAST)
    now = timezone.now()
    models.CallCount.objects.create(rule="papers-only", subject="ada s", calls=2, resets=now + timedelta(1))
    models.CallCount.objects.create(rule="papers-only", subject="old", calls=2, resets=now - timedelta(1))
    page = open_page(viewer)
    assert page.line.words == (
        "denies when query matches secret, once the session has private, until the session has checked,"
        " beyond 2 calls within 10 minutes in one session"
    )
    assert [(subject, calls) for subject, calls, _ in page.counts] == [("ada s", 2)]
    assert [note for note in page.line.notes if "brings the label" in note] == [
        "No tool brings the label 'checked' yet: name it in the brings of a tool or toolkit.",
        "No tool brings the label 'private' yet: name it in the brings of a tool or toolkit.",
    ]


def test_what_came_before_is_edited_beside_the_rest_and_problems_are_at_their_fields(editor: Client) -> None:
    entries.put(OLIVE, "gate_rule", PAST)
    typed: dict[str, Any] = {"labels": "private\nuntrusted", "calls": "3"}
    form = editor_forms.submit(editor, EDIT, SAVE, **typed, per="fortnight").context["page"].form
    assert "minute, hour, day, week" in form.errors["calls"][0]
    response = editor_forms.submit(editor, EDIT, SAVE, **typed, per="hour", of="agent")
    if response.status_code == 200:
        editor_forms.resubmit(editor, response, SAVE)
    assert entries.read("gate_rule", "papers-only") == {
        **PAST,
        "labels": ["private", "untrusted"],
        "more_than": {"calls": 3, "per": "hour"},
    }
    response = editor_forms.submit(editor, EDIT, SAVE, calls="", labels="", without="")
    if response.status_code == 200:
        editor_forms.resubmit(editor, response, SAVE)
    assert entries.read("gate_rule", "papers-only") == RULE
