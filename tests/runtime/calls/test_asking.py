"""Tests that a call that rules ask about runs once for each approval, with what was approved, and never without one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from tests import concurrently
from tests.runtime.calls import asked
from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import blocking, entries
from toolbelt.core import admitting, errors
from toolbelt.core import call_approvals as values
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions, asking, gates, last_checks
from toolbelt.runtime.calls.incoming import Call, Caller, RequestKey
from toolbelt.runtime.records import recordings


def test_a_call_waits_for_a_person_and_runs_once_when_it_is_made_again(ran: list[Any]) -> None:
    answer = asked.call()
    approval = asked.latest()
    assert answer.document() == {
        "is_error": True,
        "code": "approval-pending",
        "message": f"Refunds above 500 EUR need a person. Waiting for approval {approval.key}. Call again with exactly"
        " the same arguments.",
        "approval": {
            "id": approval.key,
            "expires": f"{approval.expires:%Y-%m-%dT%H:%M:%SZ}",
            "retry_after": 5,
        },
    }
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["pending"]
    asked.approve()
    assert asked.code(asked.call()) == "ok"
    assert ran == [asked.REFUND]
    assert asked.states() == ["done"]
    stored = models.Approval.objects.get()
    assert (stored.outcome, stored.approved_by) == ("ok", ["olive"])
    # It was spent: the next one is asked about anew.
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["done", "pending"]
    assert ran == [asked.REFUND]


def test_a_call_that_no_rule_asks_about_runs_at_once(ran: list[Any]) -> None:
    assert asked.code(asked.call({**asked.REFUND, "amount": 500})) == "ok"
    assert asked.states() == []


def test_the_record_names_the_rule_and_says_that_it_asked(ran: list[Any]) -> None:
    asked.call()
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule, record.reason) == ("approval-pending", "over-500", "always-on")
    asked.approve()
    asked.call()
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule) == ("ok", "over-500")


SAME: dict[str, Any] = {
    "another order of names": {"amount": 700, "query": "order 12"},
    "a whole number with a fraction": {"query": "order 12", "amount": 700.0},
}
OTHER: dict[str, Any] = {
    "another value": {"query": "order 12", "amount": 701},
    "a value that is nearly the same": {"query": "order 12", "amount": 700.0000000001},
    "one more argument": {**asked.REFUND, "note": ""},
    "another type": {"query": "order 12", "amount": "700"},
    "composed instead of decomposed letters": {"query": "o\u0308rder", "amount": 700},
    "true for 1": {**asked.REFUND, "flag": True},
}


@pytest.mark.parametrize("arguments", SAME.values(), ids=SAME)
def test_the_same_arguments_in_another_encoding_have_the_same_approval(
    ran: list[Any], arguments: Any
) -> None:
    asked.call()
    asked.approve()
    assert asked.code(asked.call(arguments)) == "ok"
    assert asked.states() == ["done"]


@pytest.mark.parametrize("arguments", OTHER.values(), ids=OTHER)
def test_other_arguments_are_asked_about_on_their_own(ran: list[Any], arguments: Any) -> None:
    asked.call(
        {**asked.REFUND, "flag": 1} if "flag" in arguments else {**asked.REFUND, "query": "\u00f6rder"}
    )
    asked.call()
    for approval in call_approvals.listed():
        call_approvals.approve(asked.OLIVE, approval.key, approval.shown)
    assert asked.code(asked.call(arguments)) == "approval-pending"
    assert ran == []


CALLERS: dict[str, Callable[[], Any]] = {
    "another agent": lambda: asked.call(agent="bo"),
    "another session": lambda: asked.call(session="s"),
    "a subagent": lambda: calls.answer_blocking(
        Call(key=RequestKey("ada", subagent="general"), tool="kb__search", arguments=asked.REFUND)
    ),
    "an operator's token": lambda: calls.answer_blocking(
        Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND), Caller(operator="olive")
    ),
    "a person's client": lambda: calls.answer_blocking(
        Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND), Caller(person_name="olive")
    ),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_another_caller_has_no_approval(ran: list[Any], caller: str) -> None:
    entries.put(OPERATOR, "loadout", {"name": "full", "plugins": ["kb"]})
    asked.call()
    asked.approve()
    assert asked.code(CALLERS[caller]()) == "approval-pending"
    assert ran == []


CHANGES: dict[str, Callable[[], object]] = {
    "its rule": lambda: entries.change(
        OPERATOR, "gate_rule", "over-500", {"when": {"amount": {"minimum": 1}}}
    ),
    "another rule that asks": lambda: entries.put(
        OPERATOR, "gate_rule", {"key": "every", "effect": "ask", "agents": ["ada"]}
    ),
    "its definition": lambda: models.Tool.objects.filter(key="kb__search").update(description="Other."),
    "its options": lambda: entries.change(
        OPERATOR, "agent", "ada", {"tools": [{"tool": "kb__search", "options": {"place": "x"}}]}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_approval_is_for_no_call_after_a_change_of(ran: list[Any], change: str) -> None:
    asked.call()
    asked.approve()
    CHANGES[change]()
    assert asked.code(asked.call()) == "approval-pending"
    assert ran == []
    # People are not asked about the one before any more.
    assert asked.states() == ["withdrawn", "pending"]


DENIALS: dict[str, Callable[[], object]] = {
    "blocked": lambda: blocking.set_blocked(OPERATOR, "tool", "kb__search", True),
    "off": lambda: switches.override(OPERATOR.replace(confirm=True), "ada", "kb__search", False),
    "denied by a rule": lambda: entries.put(
        OPERATOR, "gate_rule", {"key": "no", "effect": "deny", "tools": ["kb__search"]}
    ),
}


@pytest.mark.parametrize("denial", DENIALS)
def test_an_approval_never_revives_what_is_denied(ran: list[Any], denial: str) -> None:
    asked.call()
    asked.approve()
    DENIALS[denial]()
    assert asked.code(asked.call()) in ("tool-denied", "denied-by-rule")
    assert ran == []
    assert asked.states() == ["approved"]


def test_a_rejection_holds_until_it_has_passed_and_is_not_asked_about_again(ran: list[Any]) -> None:
    asked.call()
    call_approvals.reject(asked.OLIVE, asked.latest().key, "Not without a ticket.")
    for _ in range(2):
        answer = asked.call()
        assert (answer.code, answer.message) == (
            "approval-rejected",
            "An operator rejected this call of kb__search: Not without a ticket.",
        )
    assert asked.states() == ["rejected"]
    with asked.later(3700):
        assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["expired", "pending"]
    assert ran == []


def test_silence_denies_and_the_next_call_asks_anew(ran: list[Any]) -> None:
    asked.call()
    with asked.later(3700):
        with pytest.raises(errors.Refused):
            asked.approve()
        assert asked.code(asked.call()) == "approval-expired"
        assert asked.states() == ["expired"]
        assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["expired", "pending"]


def test_an_approval_that_is_not_used_in_time_expires(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"expires": 60})
    asked.call()
    asked.approve()
    with asked.later(61):
        assert asked.code(asked.call()) == "approval-expired"
    assert ran == []


def test_too_many_calls_cannot_wait(ran: list[Any]) -> None:
    for number in range(values.MAX_OF_SESSION):
        assert asked.code(asked.call({**asked.REFUND, "n": number}, session="s")) == "approval-pending"
    assert asked.code(asked.call({**asked.REFUND, "n": 99}, session="s")) == "too-many-approvals"
    # The others still have their answers, and other sessions ask.
    assert asked.code(asked.call({**asked.REFUND, "n": 0}, session="s")) == "approval-pending"
    assert asked.code(asked.call({**asked.REFUND, "n": 99}, session="t")) == "approval-pending"
    for number in range(values.MAX_OF_AGENT):
        asked.call({**asked.REFUND, "m": number})
    assert asked.code(asked.call({**asked.REFUND, "m": 99})) == "too-many-approvals"
    assert models.Approval.objects.count() == values.MAX_OF_AGENT
    assert asked.code(asked.call(agent="bo")) == "approval-pending"


def test_what_people_cannot_read_they_are_not_asked_about(ran: list[Any]) -> None:
    assert asked.code(asked.call({**asked.REFUND, "query": "x" * values.MAX_PREVIEW})) == "invalid-arguments"
    assert asked.code(asked.call({**asked.REFUND, "n": float("inf")})) == "invalid-arguments"
    assert asked.states() == []


def test_no_secret_is_stored_and_none_can_be_edited(ran: list[Any]) -> None:
    asked.call({**asked.REFUND, "password": "hunter2-hunter2"})
    row = models.Approval.objects.values().get()
    assert "hunter2" not in str(row)
    approval = asked.latest()
    with pytest.raises(errors.Invalid) as refused:
        call_approvals.edit(asked.OLIVE, approval.key, {"password": "other"}, approval.shown)
    assert refused.value.problems[0].path == "password"
    with pytest.raises(errors.Invalid):
        call_approvals.edit(
            asked.OLIVE, approval.key, {"api_key": "sk-ant-api03-0123456789abcdef"}, approval.shown
        )
    asked.approve()
    assert asked.code(asked.call({**asked.REFUND, "password": "hunter3-hunter3"})) == "approval-pending"
    assert asked.code(asked.call({**asked.REFUND, "password": "hunter2-hunter2"})) == "ok"
    assert [args["password"] for args in ran] == ["hunter2-hunter2"]


def test_a_dispatched_call_is_asked_about_as_the_tool_that_it_calls(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "plain", "effect": "ask", "tools": ["kb__plain"]})
    made = Call(
        key=asked.ADA, tool="call_tool", arguments={"tool": "kb__plain", "arguments": {}}, by_dispatch=True
    )
    assert asked.code(calls.answer_blocking(made)) == "approval-pending"
    assert asked.latest().tool == "kb__plain"
    asked.approve()
    assert asked.code(calls.answer_blocking(made)) == "ok"
    assert asked.code(calls.answer_blocking(made)) == "approval-pending"


def test_a_question_whether_a_call_is_admitted_asks_no_one(ran: list[Any]) -> None:
    assert asked.code(calls.admit(asked.ADA, "kb__search", asked.REFUND)) == "approval-pending"
    assert asked.states() == []


def test_a_rule_that_allows_waives_the_question_and_the_record_says_so(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "night", "effect": "allow", "tools": ["kb__search"]})
    assert asked.code(asked.call()) == "ok"
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule) == ("ok", "night")
    assert asked.states() == []


def test_an_observed_rule_asks_no_one_and_is_recorded(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"observed": True})
    assert asked.code(asked.call()) == "ok"
    assert models.CallRecord.objects.latest("id").would == "over-500"


def test_an_agents_own_program_runs_what_was_approved_once(ran: list[Any]) -> None:
    made = Call(key=asked.ADA, tool="shop__find", arguments=asked.REFUND)
    assert asked.code(admissions.admit(made)) == "approval-pending"
    approval = asked.latest()
    with pytest.raises(errors.Refused):
        call_approvals.edit(asked.OLIVE, approval.key, {"amount": 600}, approval.shown)
    asked.approve()
    admitted = admissions.admit(made)
    assert isinstance(admitted, admissions.Admission)
    assert asked.states() == ["spent"]
    assert asked.code(admissions.admit(made)) == "approval-pending"
    admissions.report("ada", admitted.call_id, "ok")
    assert models.Approval.objects.get(key=approval.key).outcome == "ok"


def test_no_one_is_asked_about_a_call_that_could_not_run(ran: list[Any]) -> None:
    assert asked.code(calls.run("ada", "shop__find", asked.REFUND)) == "run-by-client"
    assert (
        asked.code(admissions.admit(Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND)))
        == "run-by-toolbelt"
    )
    assert asked.states() == []


def test_a_new_agent_of_the_same_name_has_no_approvals(ran: list[Any]) -> None:
    asked.call(agent="bo")
    asked.approve()
    entries.remove(OPERATOR.replace(confirm=True), "agent", "bo")
    entries.put(OPERATOR, "agent", {"key": "bo", "tools": ["kb__search"]})
    assert asked.code(asked.call(agent="bo")) == "approval-pending"


def test_old_approvals_go_with_old_records_of_calls(ran: list[Any]) -> None:
    asked.call()
    call_approvals.reject(asked.OLIVE, asked.latest().key)
    recordings.prune(dt.timedelta(0))
    # A rejection is in force until it has passed.
    assert asked.states() == ["rejected"]
    with asked.later(7300):
        recordings.prune(dt.timedelta(0))
    assert asked.states() == []


@pytest.mark.django_db(transaction=True)
def test_of_calls_at_the_same_time_one_spends_an_approval(transactional_db: None, ran: list[Any]) -> None:
    asked.call()
    asked.approve()
    answers = [asked.code(answer) for answer in concurrently.done([asked.call] * 6)]
    assert sorted(answers).count("ok") == 1
    assert set(answers) == {"ok", "approval-pending"}
    assert len(ran) == 1
    assert asked.states() == ["done", "pending"]


def admitted(arguments: Any = asked.REFUND) -> gates.Admitted:
    """Return a call that was approved, before its last check."""
    gate = gates.CallGate(Call(key=asked.ADA, tool="kb__search", arguments=arguments), may_ask=True)
    snapshot, resolved, state = gate.resolve()
    admission = gate.admit(resolved, snapshot)
    assert isinstance(admission, admitting.Admission)
    tool = snapshot.catalog.tools["kb__search"]
    return gates.Admitted(
        gate=gate,
        definition=tool,
        server=None,
        state=state,
        options=admission.options,
        approval=admission.approval,
    )


def test_a_second_attempt_of_the_same_call_needs_no_second_approval_and_another_call_does(
    ran: list[Any],
) -> None:
    asked.call()
    asked.approve()
    one, other = admitted(), admitted()
    last_checks.check_again(one)
    # Its server was not reached, or asks its user something.
    last_checks.check_again(one)
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(other)
    assert denied.value.refusal.code == "approval-pending"
    assert asked.states() == ["spent", "pending"]
    # What was changed meanwhile applies to the second attempt as well.
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    with pytest.raises(last_checks.DeniedError):
        last_checks.check_again(one)


def test_an_approval_is_spent_in_the_check_before_the_tool_runs(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.call()
    asked.approve()
    spend = asking.spend

    def change_first(approval: values.Approval, arguments: Any, call_id: str = "") -> bool:
        # Someone else was faster.
        models.Approval.objects.update(state="withdrawn", version=9)
        return spend(approval, arguments, call_id)

    monkeypatch.setattr(asking, "spend", change_first)
    assert asked.code(asked.call()) == "tool-unavailable"
    assert ran == []
