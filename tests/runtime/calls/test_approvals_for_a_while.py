"""Tests of approvals that hold for exactly the same call for a while: for which, until when, and who ends them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from tests.runtime.calls import asked
from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.people import roles
from toolbelt.core import errors
from toolbelt.runtime import calls
from toolbelt.runtime.calls import arrival, gates, last_checks
from toolbelt.runtime.calls.incoming import Call, Caller
from toolbelt.store import call_approvals as rows
from toolbelt.store import operators

User = get_user_model()
MONTH = dt.timedelta(days=30)
AGAIN = Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND)


@pytest.fixture(autouse=True)
def people(ran: list[Any]) -> None:
    """Let olive and pia decide, as every operator may."""
    for name in ("olive", "pia"):
        User.objects.create_user(name)
        roles.assign(OPERATOR, name, "operator")


def keep(time: dt.timedelta = MONTH, **key: Any) -> Any:
    """Make a call, and approve it for a while."""
    asked.call(**key)
    approval = asked.latest()
    return call_approvals.approve(asked.OLIVE, approval.key, approval.shown, time)


def test_the_same_call_runs_again_in_any_session_and_each_time_by_an_approval_of_its_own(
    ran: list[Any],
) -> None:
    kept = keep(session="s1")
    for session in ("s1", "s1", "s2", None):
        assert asked.code(asked.call(session=session)) == "ok"
    assert ran == [asked.REFUND] * 4
    first, *others = models.Approval.objects.order_by("id")
    assert (first.key, first.state) == (kept.key, "done")
    assert [(row.state, row.always_of, row.approved_by, row.always) for row in others] == [
        ("done", kept.key, ["olive"], None)
    ] * 3


@pytest.mark.django_db(transaction=True)
def test_a_yes_for_a_while_answers_the_same_call_that_another_session_already_asked_about(
    ran: list[Any],
) -> None:
    asked.call(session="s1")
    keep(session="s2")
    assert asked.code(asked.call(session="s1")) == "ok"


OTHERS: dict[str, Callable[[], Any]] = {
    "other arguments": lambda: asked.call({**asked.REFUND, "amount": 701}),
    "an argument more": lambda: asked.call({**asked.REFUND, "note": "x"}),
    "another agent": lambda: asked.call(agent="bo"),
    "an operator's token": lambda: calls.answer_blocking(
        Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND), Caller(operator="pia")
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_it_holds_for_no_other_call(ran: list[Any], other: str) -> None:
    keep()
    assert asked.code(OTHERS[other]()) == "approval-pending"
    assert ran == []


def change_rule() -> None:
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "reason": "A new reason."})


def change_tool() -> None:
    tool = models.Tool.objects.get(key="kb__search")
    tool.description = "Searches, and deletes what it finds."
    tool.save()


def add_rule() -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "more", "effect": "ask", "tools": ["kb__search"]})


def delete_agent() -> None:
    models.Agent.objects.get(key="ada").delete()
    entries.put(OPERATOR, "agent", asked.ROADS["agents"][0])


@pytest.mark.parametrize("end", [change_rule, change_tool, add_rule, delete_agent])
def test_it_ends_with_a_change_of(ran: list[Any], end: Callable[[], None]) -> None:
    keep()
    end()
    assert asked.code(asked.call()) == "approval-pending"
    assert ran == []


def change(**columns: Any) -> None:
    User.objects.filter(username="olive").update(**columns)


def recreate() -> None:
    User.objects.get(username="olive").delete()
    User.objects.create_superuser("olive")


LOST: dict[str, Callable[[], Any]] = {
    "a role": lambda: roles.remove(OPERATOR, "olive", "operator"),
    "a login": lambda: change(is_active=False),
    "an account, and a new one of its name": recreate,
    "a name": lambda: change(username="oona"),
}


@pytest.mark.parametrize("lost", LOST)
def test_it_ends_when_its_approver_may_not_approve_any_more_and_loses(ran: list[Any], lost: str) -> None:
    keep()
    asked.call()
    assert calls.check(AGAIN, ask=True).would == "run"
    assert len(call_approvals.kept()) == 1
    LOST[lost]()
    assert call_approvals.kept() == []
    assert asked.code(asked.call()) == "approval-pending"
    # What it had approved, and had not begun to run.
    assert asked.states() == ["done", "withdrawn", "pending"]
    assert len(ran) == 1
    # Another person's holds.
    approval = asked.latest()
    call_approvals.approve(asked.PIA, approval.key, approval.shown, MONTH)
    assert [asked.code(asked.call()), asked.code(asked.call(session="s2"))] == ["ok", "ok"]


def test_it_ends_when_its_approver_leaves_the_group_of_the_rule(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "approvers": ["finance"]})
    finance = Group.objects.create(name="finance")
    finance.user_set.add(User.objects.get(username="olive"))
    keep()
    assert [asked.code(asked.call()), asked.code(asked.call())] == ["ok", "ok"]
    finance.user_set.clear()
    assert asked.code(asked.call()) == "approval-pending"


def test_an_operator_of_the_agent_alone_keeps_for_that_agent(ran: list[Any]) -> None:
    roles.remove(OPERATOR, "olive", "operator")
    operators.put("ada", ["olive"])
    keep()
    assert [asked.code(asked.call()), asked.code(asked.call())] == ["ok", "ok"]
    operators.put("ada", [])
    assert asked.code(asked.call()) == "approval-pending"


def test_it_is_looked_at_in_the_last_check(ran: list[Any]) -> None:
    keep()
    asked.call()
    waiting = arrival.prepare(gates.CallGate(AGAIN, may_ask=True))
    assert isinstance(waiting, gates.Admitted)
    change(is_active=False)
    with pytest.raises(last_checks.DeniedError):
        last_checks.check_again(waiting)


def test_it_ends_by_itself(ran: list[Any]) -> None:
    keep(dt.timedelta(days=1))
    assert asked.code(asked.call()) == "ok"
    with asked.later(86_500):
        assert asked.code(asked.call()) == "approval-pending"
    assert len(ran) == 1


def test_it_never_runs_what_a_rule_denies(ran: list[Any]) -> None:
    keep()
    entries.put(OPERATOR, "gate_rule", {"key": "none", "effect": "deny", "tools": ["kb__search"]})
    assert asked.code(asked.call()) == "denied-by-rule"
    assert ran == []


def test_whoever_may_decide_revokes_it_and_people_are_asked_again(ran: list[Any]) -> None:
    kept = keep()
    assert [each.key for each in call_approvals.kept()] == [kept.key]
    call_approvals.revoke(asked.PIA, kept.key)
    assert call_approvals.kept() == []
    # The one call that was approved with it still runs, once.
    assert asked.code(asked.call()) == "ok"
    assert asked.code(asked.call()) == "approval-pending"
    with pytest.raises(errors.Refused, match="nothing to revoke"):
        call_approvals.revoke(asked.PIA, kept.key)
    actions = models.AuditEntry.objects.filter(subject_kind="approval").order_by("id")
    assert [(entry.action, entry.actor) for entry in actions] == [
        ("approval.approve", "olive"),
        ("approval.revoke", "pia"),
    ]
    assert actions[0].after["always"].startswith(kept.always.date().isoformat())


def test_revoking_withdraws_what_was_approved_by_it_and_has_not_begun(ran: list[Any]) -> None:
    kept = keep()
    asked.call()
    checked = calls.check(AGAIN, ask=True)
    assert checked.would == "run"
    assert asked.latest().always_of == kept.key
    call_approvals.revoke(asked.PIA, kept.key)
    assert asked.states() == ["done", "withdrawn"]
    assert asked.code(asked.call()) == "approval-pending"


def test_a_check_knows_it_and_writes_nothing(ran: list[Any]) -> None:
    keep()
    asked.call()
    assert calls.check(AGAIN).would == "run"
    assert models.Approval.objects.count() == 1


def test_what_people_cannot_answer_for_in_advance_is_approved_once_only(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    for time in (dt.timedelta(days=31), dt.timedelta(0)):
        with pytest.raises(errors.Refused, match="30 days"):
            call_approvals.approve(asked.OLIVE, approval.key, approval.shown, time)
    edited = call_approvals.edit(asked.OLIVE, approval.key, {"amount": 600}, approval.shown)
    with pytest.raises(errors.Refused, match="edited"):
        call_approvals.approve(asked.OLIVE, approval.key, edited.shown, MONTH)
    asked.call({**asked.REFUND, "token": "hunter2-hunter2"})
    hidden = asked.latest()
    with pytest.raises(errors.Refused, match="Not all of its arguments"):
        call_approvals.approve(asked.OLIVE, hidden.key, hidden.shown, MONTH)
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "approvals": 2})
    asked.call()
    of_two = asked.latest()
    with pytest.raises(errors.Refused, match="Several people"):
        call_approvals.approve(asked.OLIVE, of_two.key, of_two.shown, MONTH)
    assert set(asked.states()) <= {"pending", "withdrawn"}


def test_it_is_kept_as_long_as_it_holds(ran: list[Any]) -> None:
    kept = keep()
    asked.call()
    assert rows.prune(kept.asked + dt.timedelta(days=1)) == 0
    call_approvals.revoke(asked.PIA, kept.key)
    assert rows.prune(kept.asked + dt.timedelta(days=1)) == 1


def test_its_runs_are_no_decisions_in_the_figures_of_a_rule(ran: list[Any]) -> None:
    keep()
    for _ in range(3):
        asked.call()
    figures = call_approvals.figures("over-500", 30)
    assert (figures.asked, figures.approved) == (1, 1)
