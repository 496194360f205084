"""Tests of Review's tab Approvals, of the page of a request, and of deciding there."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.asking import RULE, ask
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.people import roles
from toolbelt.core import call_approvals as values

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SETUP = writing.by("setup", via="command")
PIA = writing.by("pia", via="screen")
# Toolbelt runs it; papers is run by the agent's own program.
TOOL = "github__issue_read"
LIST, DECIDE = "/review/approvals/", "/review/approvals/decide/"


@pytest.fixture
def decider(operator: Client, olive: auth.User) -> Client:
    """Return the browser of olive, who may decide about the calls of every agent."""
    olive.user_permissions.add(auth.Permission.objects.get(codename="decide_approval"))
    return operator


@pytest.fixture(autouse=True)
def rule(belt: None) -> None:
    entries.put(SETUP, "gate_rule", RULE)
    models.Plugin.objects.filter(name="github").update(upstream={"url": "https://github.example/mcp"})


def of(approval: values.Approval) -> str:
    return f"{LIST}{approval.key}/"


def state(approval: values.Approval) -> str:
    return call_approvals.find(approval.key).state


def decide(browser: Client, decision: str, *approvals: values.Approval, **fields: Any) -> Any:
    shown = [f"{approval.key}={approval.shown}" for approval in approvals]
    return dashboard.post(browser, DECIDE, decision=decision, call=shown, **fields)


def edit(browser: Client, approval: values.Approval, **fields: Any) -> Any:
    return dashboard.post(browser, f"{of(approval)}edit/", htmx=False, **{"shown": approval.shown, **fields})


def open_page(browser: Client, address: str = LIST) -> Any:
    response = browser.get(address)
    assert response.status_code == 200, response
    return response.context["page"]


def badge(browser: Client) -> Any:
    return browser.get("/help/").context["chrome"]["to_decide"]["total"]


def test_the_list_groups_calls_by_rule_and_tool_the_one_that_expires_first_first(decider: Client) -> None:
    later = ask({"amount": 900}, agent="bob")
    first = ask({"amount": 700}, ago=600)
    other = ask({"order": 12}, tool="shell", rule="shells", ago=60)
    page = open_page(decider)
    assert [(group.tool, [call.approval.key for call in group.calls]) for group in page.groups] == [
        ("papers", [first.key, later.key]),
        ("shell", [other.key]),
    ]
    refunds, shells = page.groups
    assert [(rule.key, rule.words) for rule in refunds.rules] == [("over-500", "asks when amount > 500")]
    # It is removed, or was never there.
    assert [(rule.key, rule.words) for rule in shells.rules] == [("shells", "")]
    html = dashboard.text(decider.get(LIST))
    assert "Approve these 2" in html
    assert "Refunds above 500 EUR need a person." in html
    assert badge(decider) == 3


def test_arguments_say_what_changed_since_the_last_call_that_was_decided_about(decider: Client) -> None:
    last = ask({"amount": 600, "order": "a-1", "note": "late"}, ago=60)
    ask({"amount": 1}, ago=50)  # Nobody decided about it.
    ask({"amount": 2}, rule="other", ago=40)
    call_approvals.approve(PIA, last.key, last.shown)
    call = ask({"amount": 700, "order": "a-1", "currency": "EUR", "token": "[withheld]"})
    (view,) = [
        each for group in open_page(decider).groups for each in group.calls if each.approval.key == call.key
    ]
    marks = {each.name: (each.is_new, each.is_changed, each.is_hidden) for each in view.arguments}
    assert marks == {
        "amount": (False, True, False),
        "currency": (True, False, False),
        "order": (False, False, False),
        "token": (True, False, True),
    }
    assert view.removed == ("note",)
    assert view.before.approval.key == last.key
    amount = next(each for each in view.arguments if each.name == "amount")
    assert [(line.sign, line.pieces[0].text) for line in amount.difference.lines] == [
        ("−", "600"),
        ("+", "700"),
    ]


def test_a_text_that_could_be_read_as_a_number_is_quoted(decider: Client) -> None:
    call = ask({"amount": "700", "order": "a 12", "empty": ""})
    view = open_page(decider, of(call)).call
    shown = {each.name: each.text.lines[0].pieces[0].text for each in view.arguments}
    assert shown == {"amount": '"700"', "order": "a 12", "empty": '""'}


def test_hostile_values_are_shown_as_they_are(decider: Client) -> None:
    call = ask({"<b>": "<script>alert(1)</script>", "to": "a\u202eb"})
    html = dashboard.text(decider.get(of(call)))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "U+202E" in html


@pytest.mark.parametrize("htmx", [True, False])
def test_a_call_is_approved_once(decider: Client, htmx: bool) -> None:
    call = ask({"amount": 700})
    shown = f"{call.key}={call.shown}"
    response = dashboard.post(decider, DECIDE, htmx=htmx, decision="approve", call=shown)
    assert response.status_code == (200 if htmx else 303)
    assert (state(call), call_approvals.find(call.key).approved_by) == ("approved", ("olive",))
    assert dashboard.latest_entry().action == "approval.approve"
    html = dashboard.text(response if htmx else decider.get(LIST))
    assert "The call of papers by ada is approved." in html
    assert "approved by olive; runs when the agent calls again" in html
    assert badge(decider) == 0


def test_several_calls_are_approved_as_each_was_shown_or_none_is(decider: Client) -> None:
    first, second = ask({"amount": 700}), ask({"amount": 800}, tool=TOOL)
    call_approvals.edit(PIA, second.key, {"amount": 1}, second.shown)
    response = decide(decider, "approve", first, second)
    assert response.status_code == 409
    assert f"pia edited the call {second.key} in the meantime" in dashboard.text(response)
    assert [state(first), state(second)] == ["pending", "pending"]
    decide(decider, "approve", first, call_approvals.find(second.key))
    assert [state(first), state(second)] == ["approved", "approved"]
    batches = set(models.AuditEntry.objects.filter(action="approval.approve").values_list("batch", flat=True))
    assert len(batches) == 1
    assert None not in batches


def test_a_call_is_rejected_with_a_reason_that_the_model_reads(decider: Client) -> None:
    call = ask({"amount": 700})
    response = decide(decider, "reject", call, note="Not without a ticket.")
    assert "The model reads: Not without a ticket." in dashboard.text(response)
    found = call_approvals.find(call.key)
    assert (found.state, found.rejected_by, found.note) == ("rejected", "olive", "Not without a ticket.")


@pytest.mark.parametrize(
    ("meanwhile", "words"),
    [
        ("rejected", "rejected by pia"),
        ("approved", "approved by pia"),
        ("expired", "expired: no one decided in time"),
        ("withdrawn", "withdrawn: its rules or its agent changed"),
    ],
)
@pytest.mark.parametrize("decision", ["approve", "reject", "edit"])
def test_a_late_decision_says_what_happened_meanwhile(
    decider: Client, meanwhile: str, words: str, decision: str
) -> None:
    call = ask({"amount": 700})
    match meanwhile:
        case "rejected":
            call_approvals.reject(PIA, call.key)
        case "approved":
            call_approvals.approve(PIA, call.key, call.shown)
        case "expired":
            models.Approval.objects.update(expires=call.asked)
        case "withdrawn":
            models.Approval.objects.update(state="withdrawn")
    before = state(call)
    if decision == "edit":
        assert edit(decider, call, **{"value-0": "1"}).status_code == 303
        response = decider.get(of(call))
    else:
        response = decide(decider, decision, call)
        assert response.status_code == 409
    html = dashboard.text(response)
    assert "Nothing was decided" in html
    assert words in html
    assert state(call) == before


def test_two_people_approve_and_the_page_says_who_has(decider: Client, olive: auth.User) -> None:
    call = ask({"amount": 700}, approvals=2)
    assert open_page(decider).groups[0].calls[0].people == "0 of 2 approved"
    response = decide(decider, "approve", call)
    assert "Another person has to approve, too." in dashboard.text(response)
    view = open_page(decider, of(call)).call
    assert (view.people, view.may_approve, view.may_reject) == ("1 of 2 approved: olive", False, True)
    assert "You have approved it" in dashboard.text(decider.get(LIST))
    assert decide(decider, "approve", call).status_code == 409
    call_approvals.approve(PIA, call.key, call.shown)
    assert state(call) == "approved"
    assert "Approved by olive, pia" in dashboard.text(decider.get(of(call)))


def test_the_caller_sees_why_another_person_has_to_decide(decider: Client) -> None:
    call = ask({"amount": 700}, asked_by="olive")
    html = dashboard.text(decider.get(of(call)))
    assert "It was called with a token or a client of yours: another person has to decide." in html
    assert 'value="approve"' not in html
    assert decide(decider, "approve", call).status_code == 409
    assert state(call) == "pending"


def test_arguments_are_edited_and_approved_in_one_step(decider: Client) -> None:
    call = ask({"amount": 700, "note": "line 1\r\nline 2", "token": "[withheld]"}, tool=TOOL)
    form = open_page(decider, of(call)).form
    assert [(field.label, field.is_text) for field in form.fields] == [("amount", False), ("note", True)]
    sent = {field.name: field.typed.replace("\n", "\r\n") for field in form.fields}
    edit(decider, call, **sent | {form.fields[0].name: "500"})
    found = call_approvals.find(call.key)
    assert (found.state, found.edited, found.approved_by) == ("approved", {"amount": 500}, ("olive",))
    actions = models.AuditEntry.objects.order_by("-id").values_list("action", flat=True)[:2]
    assert list(actions) == ["approval.approve", "approval.edit"]
    html = dashboard.text(decider.get(of(call)))
    assert "Approved by olive, with changes" in html
    assert "The agent called with:" in html


def test_an_edit_that_changes_nothing_only_approves(decider: Client) -> None:
    call = ask({"amount": 700})
    edit(decider, call, **{"value-0": "700"})
    found = call_approvals.find(call.key)
    assert (found.state, found.edited, found.edited_by) == ("approved", {}, "")


def test_an_edit_that_cannot_be_read_or_does_not_fit_is_shown_at_its_field(decider: Client) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    models.Tool.objects.filter(key=TOOL).update(input_schema=schema)
    call = ask({"amount": 700, "order": "a"}, tool=TOOL)
    for typed, problem in (("7oo", "not JSON"), ('"700"', "number")):
        response = edit(decider, call, **{"value-0": typed, "value-1": "b"})
        assert response.status_code == 422
        amount, order = response.context["page"].form.fields
        assert problem in amount.problem
        assert (amount.typed, order.typed) == (typed, "b")
    assert (state(call), call_approvals.find(call.key).edited) == ("pending", {})


def test_edited_arguments_that_a_rule_denies_are_shown_again(decider: Client) -> None:
    entries.put(SETUP, "gate_rule", {"key": "not-1", "effect": "deny", "when": {"amount": {"const": 1}}})
    call = ask({"amount": 700}, tool=TOOL)
    response = edit(decider, call, **{"value-0": "1"})
    assert response.status_code == 422
    form = response.context["page"].form
    assert "not-1" in form.problem
    assert form.fields[0].typed == "1"
    assert state(call) == "pending"


def test_what_the_agents_own_program_runs_cannot_be_edited(decider: Client) -> None:
    call = ask({"amount": 700})
    assert open_page(decider, of(call)).call.may_edit is False
    response = edit(decider, call, **{"value-0": "1"})
    assert response.status_code == 422
    assert "own program runs papers" in response.context["page"].form.problem


def test_reading_decides_nothing(decider: Client) -> None:
    call = ask({"amount": 700})
    for query in ({}, {"decision": "approve", "call": f"{call.key}={call.shown}"}):
        for address in (LIST, of(call), f"{LIST}{call.key.lower()}/"):
            assert decider.get(address, query).status_code == 200
    assert decider.get(DECIDE).status_code == 405
    assert decider.get(f"{of(call)}edit/").status_code == 405
    assert state(call) == "pending"


def test_a_call_is_approved_for_a_while_on_its_page_and_revoked_on_the_list(decider: Client) -> None:
    call, other = ask({"amount": 700}), ask({"amount": 800, "token": "[withheld]"})
    assert open_page(decider, of(call)).call.may_keep
    assert not open_page(decider, of(other)).call.may_keep
    response = decide(decider, "always", other)
    assert (response.status_code, state(other)) == (409, "pending")
    decide(decider, "always", call)
    assert state(call) == "approved"
    assert [each.key for each in open_page(decider).kept] == [call.key]
    assert "approved in any session until" in dashboard.text(decider.get(of(call)))
    dashboard.post(decider, f"{of(call)}revoke/")
    assert open_page(decider).kept == ()
    assert dashboard.post(decider, f"{of(call)}revoke/").status_code == 422


def test_the_list_says_how_people_decide_and_marks_who_rejects_nothing(decider: Client) -> None:
    for amount in range(600, 620):
        call_approvals.approve(PIA, (call := ask({"amount": amount})).key, call.shown)
    (pia,) = open_page(decider).deciders
    assert (pia.name, pia.decided, pia.share, pia.is_habit) == ("pia", 20, "100 %", True)
    rejected = ask({"amount": 900})
    call_approvals.reject(PIA, rejected.key)
    (pia,) = open_page(decider).deciders
    assert (pia.decided, pia.share, pia.is_habit) == (21, "95 %", False)


def test_who_is_in_no_group_of_the_rule_sees_who_has_to_approve(decider: Client, olive: auth.User) -> None:
    call = ask({"amount": 700}, approvers=("finance",))
    view = open_page(decider, of(call)).call
    assert (view.may_approve, view.may_edit, view.may_reject) == (False, False, True)
    assert "A member of finance has to approve this call." in dashboard.text(decider.get(LIST))
    decide(decider, "approve", call)
    assert state(call) == "pending"
    olive.groups.add(auth.Group.objects.create(name="finance"))
    decide(decider, "approve", call)
    assert state(call) == "approved"


def test_who_may_not_decide_sees_why(viewer: Client) -> None:
    call = ask({"amount": 700, "order": "secret-order"})
    html = dashboard.text(viewer.get(LIST))
    assert "Approvers, operators and administrators decide" in html
    assert "secret-order" not in html
    response = viewer.get(of(call))
    assert response.status_code == 403
    assert "Approvers, operators and administrators decide" in dashboard.text(response)
    assert badge(viewer) == 0
    for answer in (decide(viewer, "approve", call), edit(viewer, call)):
        assert answer.status_code == 403
    assert state(call) == "pending"


def test_an_operator_of_one_agent_decides_about_its_calls_alone() -> None:
    user = get_user_model().objects.create_user("otto")
    roles.set_operators(SETUP, "ada", ["otto"])
    otto = fast_fixtures.logged_in(user)
    own, other = ask({"amount": 700}), ask({"amount": 800}, agent="bob")
    (group,) = open_page(otto).groups
    assert [call.approval.key for call in group.calls] == [own.key]
    assert badge(otto) == 1
    assert otto.get(of(other)).status_code == 403
    assert decide(otto, "approve", own, other).status_code == 403
    assert (state(own), state(other)) == ("pending", "pending")
    assert decide(otto, "approve", own).status_code == 200
    assert state(own) == "approved"


def test_bad_decisions_are_refused(decider: Client) -> None:
    call = ask({"amount": 700})
    bad: list[dict[str, Any]] = [
        {"decision": "perhaps", "call": f"{call.key}={call.shown}"},
        {"decision": "approve"},
        {"decision": "approve", "call": call.key},
        {"decision": "approve", "call": "NOSUCH22=0f"},
        {"decision": "reject", "call": f"{call.key}=0f", "note": "x" * 501},
    ]
    for fields in bad:
        response = dashboard.post(decider, DECIDE, **fields)
        assert response.status_code in (409, 422)
        assert "Nothing was decided" in dashboard.text(response)
    assert decider.get(f"{LIST}NOSUCH22/").status_code == 404
    assert state(call) == "pending"


def test_an_empty_list_says_what_a_rule_that_asks_is(decider: Client, olive: auth.User) -> None:
    html = dashboard.text(decider.get(LIST))
    assert "A rule whose effect is <em>Ask</em> holds a call" in html
    assert "asks when amount &gt; 500" in html
    assert "/new/rule/" not in html
    olive.user_permissions.add(auth.Permission.objects.get(codename="add_gaterule"))
    assert '"/new/rule/"' in dashboard.text(decider.get(LIST))


def test_more_calls_than_a_page_has_follow_once_these_are_decided(
    decider: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolbelt.web.review.approvals.MAX_AT_ONCE", 2)
    first, *_ = [ask({"amount": 700 + number}, ago=60 - number) for number in range(3)]
    page = open_page(decider)
    assert (page.later, [len(group.calls) for group in page.groups]) == (1, [2])
    decide(decider, "approve", first)
    assert open_page(decider).later == 0


def test_the_number_of_queries_does_not_grow_with_the_calls(decider: Client) -> None:
    counts = []
    for number in (1, 12):
        for _ in range(number):
            call_approvals.reject(PIA, ask({"amount": 800}, ago=60).key)
            ask({"amount": 700})
        decider.get(LIST)
        counts.append(dashboard.count_queries(lambda: decider.get(LIST)))
    assert counts[0] == counts[1] < 20


def test_the_audit_log_says_whose_call_was_decided(decider: Client, olive: auth.User) -> None:
    call = ask({"amount": 700})
    decide(decider, "reject", call, note="No.")
    html = dashboard.text(decider.get("/audit/"))
    assert "rejected a call of" in html
    assert call.shown not in html
    olive.user_permissions.add(auth.Permission.objects.get(codename="view_approval"))
    html = dashboard.text(decider.get("/audit/"))
    (line,) = [line for line in html.split('id="change-') if "rejected a call of" in line]
    assert "/tools/papers/" in line
    assert "/agents/ada/" in line
    assert "No." in line
    assert "/undo/" not in line
