"""Tests of what people decide about calls: who may, what they saw, what they edit, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import models as auth

from tests import concurrently
from tests.runtime import sample_plugins
from tests.runtime.calls import asked
from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.core import errors
from toolbelt.plugins import contract
from toolbelt.runtime import calls
from toolbelt.runtime.calls import arrival, gates, last_checks
from toolbelt.runtime.calls.incoming import Call, Caller


def test_an_operator_changes_arguments_and_the_tool_gets_those(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    call_approvals.edit(asked.OLIVE, approval.key, {"amount": 600}, approval.shown)
    assert asked.code(asked.call()) == "approval-pending"
    asked.approve(asked.PIA)
    assert asked.code(asked.call()) == "ok"
    assert ran == [{**asked.REFUND, "amount": 600}]
    stored = models.Approval.objects.get()
    assert (stored.state, stored.edited, stored.edited_by) == ("done", {"amount": 600}, "olive")
    assert stored.edited_digest not in ("", stored.digest)
    # What was called is what the approval is for, not what it became.
    assert asked.code(asked.call({**asked.REFUND, "amount": 600})) == "approval-pending"


def test_the_model_is_told_what_an_operator_changed_also_if_the_tool_fails(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = 'An operator changed this call before it ran: amount is 600 instead of 700; note is "x".'

    def edit_and_call() -> Any:
        asked.call()
        approval = asked.latest()
        values = {"note": "x", "amount": 600}
        call_approvals.edit_and_approve(asked.OLIVE, approval.key, values, approval.shown)
        return asked.call()

    answer = edit_and_call()
    assert answer.notice == answer.document()["notice"] == told

    async def fail(self: Any, args: dict[str, Any]) -> Any:
        raise contract.ToolError("The till is empty.")

    monkeypatch.setattr(sample_plugins.Kb, "search", fail)
    failed = edit_and_call()
    assert (failed.code, failed.document()["notice"]) == ("tool-failed", told)
    # Its own arguments ran, and there is nothing to tell.
    asked.call()
    asked.approve()
    assert "notice" not in asked.call().document()


def test_nobody_approves_what_they_did_not_see(ran: list[Any]) -> None:
    asked.call()
    seen = asked.latest()
    call_approvals.edit(asked.PIA, seen.key, {"amount": 600}, seen.shown)
    with pytest.raises(errors.Stale):
        call_approvals.approve(asked.OLIVE, seen.key, seen.shown)
    with pytest.raises(errors.Stale):
        call_approvals.edit(asked.OLIVE, seen.key, {"amount": 650}, seen.shown)
    assert asked.states() == ["pending"]


EDITS: dict[str, dict[str, Any]] = {
    "arguments that do not fit the tool": {"query": 7},
    "arguments that a rule denies": {"amount": 9500},
    "arguments that another rule asks about": {"query": "all"},
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_call_is_not_edited_into(ran: list[Any], edit: str) -> None:
    rule = {
        "key": "all",
        "effect": "ask",
        "tools": ["kb__search"],
        "when": {"query": {"const": "all"}},
        "approvals": 2,
    }
    entries.put(OPERATOR, "gate_rule", rule)
    asked.call()
    approval = asked.latest()
    with pytest.raises((errors.Invalid, errors.Refused)):
        call_approvals.edit(asked.OLIVE, approval.key, EDITS[edit], approval.shown)
    assert asked.latest().edited == {}


def test_edited_arguments_are_checked_again_before_the_tool_runs(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    call_approvals.edit(asked.OLIVE, approval.key, {"amount": 8000}, approval.shown)
    asked.approve()
    rule = {"key": "no-8000", "effect": "deny", "when": {"amount": {"minimum": 8000}}}
    entries.put(OPERATOR, "gate_rule", rule)
    assert asked.code(asked.call()) == "denied-by-rule"
    assert ran == []
    assert asked.states() == ["withdrawn"]


def test_two_people_have_to_approve_and_an_edit_starts_again(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    asked.call()
    asked.approve(asked.OLIVE)
    with pytest.raises(errors.Refused):
        asked.approve(asked.OLIVE)
    assert asked.code(asked.call()) == "approval-pending"
    call_approvals.edit(asked.PIA, asked.latest().key, {"amount": 600}, asked.latest().shown)
    assert asked.latest().approved_by == ()
    asked.approve(asked.PIA)
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.approve(asked.OLIVE).state == "approved"
    assert asked.code(asked.call()) == "ok"
    assert len(ran) == 1


def test_the_person_behind_a_token_does_not_decide_about_its_calls(ran: list[Any]) -> None:
    made = Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND)
    assert asked.code(calls.answer_blocking(made, Caller(operator="olive"))) == "approval-pending"
    with pytest.raises(errors.Refused):
        asked.approve(asked.OLIVE)
    with pytest.raises(errors.Refused):
        call_approvals.edit(asked.OLIVE, asked.latest().key, {"amount": 600}, asked.latest().shown)
    asked.approve(asked.PIA)
    assert asked.code(calls.answer_blocking(made, Caller(operator="olive"))) == "ok"


def test_only_people_decide(ran: list[Any]) -> None:
    asked.call()
    for kind in ("agent", "server", "client", "clock"):
        other = writing.Write(actor=writing.Actor(name="ada", via="api", kind=kind))  # type: ignore[arg-type]
        with pytest.raises(errors.Refused):
            asked.approve(other)
    assert asked.states() == ["pending"]


def test_each_decision_is_in_the_audit_log_and_cannot_be_undone(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    call_approvals.edit(asked.OLIVE, approval.key, {"amount": 600}, approval.shown)
    call_approvals.reject(asked.PIA, approval.key, "Ask again.")
    logged = models.AuditEntry.objects.filter(subject_kind="approval").order_by("id")
    assert [(entry.action, entry.actor, entry.subject_key, entry.key) for entry in logged] == [
        ("approval.edit", "olive", approval.key, "kb__search"),
        ("approval.reject", "pia", approval.key, "kb__search"),
    ]
    assert logged[0].after["edited"] == ["amount"]
    assert "600" not in str(logged[0].after)
    assert (logged[1].after["note"], logged[1].after["shown"]) == ("Ask again.", asked.latest().shown)


def test_a_detail_says_what_changed_since_the_last_one(ran: list[Any]) -> None:
    asked.call({**asked.REFUND, "note": "x"})
    call_approvals.reject(asked.OLIVE, asked.latest().key)
    asked.call({"query": "order 12", "amount": 800, "token": "abcdef-abcdef"})
    detail = call_approvals.detail(asked.latest().key)
    assert [(each.name, each.is_new, each.is_changed, each.is_hidden) for each in detail.arguments] == [
        ("amount", False, True, False),
        ("query", False, False, False),
        ("token", True, False, True),
    ]
    assert detail.removed == ("note",)
    assert [rule.key for rule in detail.rules] == ["over-500"]
    (group,) = call_approvals.pending()
    assert (group.rules, group.tool, len(group.approvals)) == (("over-500",), "kb__search", 1)
    assert call_approvals.counts() == {"ada": 1}
    assert call_approvals.pending(agents=["bo"]) == ()


def test_several_calls_are_approved_at_once_or_none_of_them(ran: list[Any]) -> None:
    asked.call()
    asked.call({**asked.REFUND, "amount": 800})
    shown = {approval.key: approval.shown for approval in call_approvals.listed()}
    first, second = shown
    with pytest.raises(errors.Stale):
        call_approvals.approve_all(asked.OLIVE, {first: shown[first], second: "other"})
    assert asked.states() == ["pending", "pending"]
    call_approvals.approve_all(asked.OLIVE, shown)
    assert asked.states() == ["approved", "approved"]
    assert len({entry.batch for entry in models.AuditEntry.objects.filter(action="approval.approve")}) == 1


@pytest.mark.django_db(transaction=True)
def test_of_decisions_at_the_same_time_one_counts(transactional_db: None, ran: list[Any]) -> None:
    asked.call()
    seen = asked.latest()
    acts = [
        lambda: call_approvals.approve(asked.OLIVE, seen.key, seen.shown),
        lambda: call_approvals.reject(asked.PIA, seen.key),
        lambda: call_approvals.edit(asked.PIA, seen.key, {"amount": 600}, seen.shown),
    ]
    done = [answer for answer in concurrently.done(acts) if not isinstance(answer, Exception)]
    now = asked.latest()
    assert now.version == len(done)
    assert (now.state, bool(now.edited)) != ("approved", True)


def test_figures_say_how_often_how_fast_and_what_each_person_decided(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "approvals": 2})
    asked.call()
    asked.approve(asked.OLIVE)
    with asked.later(60):
        asked.approve(asked.PIA)
        asked.call({**asked.REFUND, "amount": 800})
        call_approvals.reject(asked.OLIVE, asked.latest().key)
    assert [(each.name, each.decided, each.approved, each.share) for each in call_approvals.deciders(30)] == [
        ("olive", 2, 1, 0.5),
        ("pia", 1, 1, 1.0),
    ]
    assert round(call_approvals.deciders(30)[1].median_wait.total_seconds()) == 60
    assert call_approvals.deciders(30, agents=["bo"]) == ()


def join(group: str, *names: str) -> None:
    for name in names:
        user, _ = auth.User.objects.get_or_create(username=name)
        user.user_permissions.add(auth.Permission.objects.get(codename="decide_approval"))
        user.groups.add(auth.Group.objects.get_or_create(name=group)[0])


def ask_groups(**more: Any) -> None:
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "approvers": ["finance"], **more})
    asked.call()


def test_only_a_member_of_a_group_of_the_rule_approves_and_everyone_who_may_decide_rejects(
    ran: list[Any],
) -> None:
    ask_groups()
    join("sales", "olive")
    with pytest.raises(errors.Refused, match="A member of finance"):
        asked.approve(asked.OLIVE)
    assert call_approvals.no_help([asked.latest()], "olive") == {
        asked.latest().key: "A member of finance has to approve this call."
    }
    join("finance", "olive")
    assert asked.approve(asked.OLIVE).state == "approved"
    assert asked.code(asked.call()) == "ok"
    asked.call({**asked.REFUND, "amount": 800})
    assert call_approvals.reject(asked.PIA, asked.latest().key).state == "rejected"


def test_two_of_a_group_are_two_members_of_it(ran: list[Any]) -> None:
    join("finance", "olive", "pia")
    ask_groups(approvals=2)
    assert asked.approve(asked.OLIVE).state == "pending"
    with pytest.raises(errors.Refused, match="A member of finance"):
        asked.approve(writing.by("otto", via="screen"))
    assert asked.approve(asked.PIA).state == "approved"


def test_who_left_the_group_meanwhile_does_not_count(ran: list[Any]) -> None:
    join("finance", "olive", "pia", "otto")
    ask_groups(approvals=2)
    asked.approve(asked.OLIVE)
    auth.User.objects.get(username="olive").groups.clear()
    assert asked.approve(asked.PIA).state == "pending"
    assert asked.approve(writing.by("otto", via="screen")).state == "approved"


@pytest.mark.parametrize("lost", ["a login", "a permission", "an account"])
def test_who_may_not_decide_any_more_when_the_last_person_approves_does_not_count(
    ran: list[Any], lost: str
) -> None:
    join("finance", "olive", "pia", "otto")
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    asked.call()
    asked.approve(asked.OLIVE)
    olive = auth.User.objects.get(username="olive")
    match lost:
        case "a login":
            olive.is_active = False
            olive.save()
        case "a permission":
            olive.user_permissions.clear()
        case _:
            olive.delete()
    assert asked.approve(asked.PIA).state == "pending"
    assert asked.latest().approved_by == ("pia",)
    assert asked.approve(writing.by("otto", via="screen")).state == "approved"
    assert asked.code(asked.call()) == "ok"


def replace(olive: Any) -> None:
    olive.delete()
    join("finance", "olive")


LOST: dict[str, Callable[[Any], object]] = {
    "a login": lambda olive: auth.User.objects.update(is_active=False),
    "a permission": lambda olive: olive.user_permissions.clear(),
    "a group": lambda olive: olive.groups.clear(),
    "an account": lambda olive: olive.delete(),
    "an account, and a new one of its name": replace,
}


@pytest.mark.parametrize("lost", LOST)
def test_an_approval_ends_with_the_right_of_its_person_and_people_are_asked_again(
    ran: list[Any], lost: str
) -> None:
    join("finance", "olive", "pia")
    ask_groups()
    asked.approve(asked.OLIVE)
    LOST[lost](auth.User.objects.get(username="olive"))
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["withdrawn", "pending"]
    assert ran == []
    auth.User.objects.update(is_active=True)
    asked.approve(asked.PIA)
    assert asked.code(asked.call()) == "ok"


def test_an_approval_ends_if_its_person_gets_another_name(ran: list[Any]) -> None:
    join("finance", "olive", "pia")
    asked.call()
    asked.approve(asked.OLIVE)
    olive = auth.User.objects.get(username="olive")
    olive.save()
    assert asked.states() == ["approved"]
    olive.username = "olivia"
    olive.save()
    auth.User.objects.create_superuser("olive")
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["withdrawn", "pending"]
    assert ran == []


@pytest.mark.parametrize("lost", LOST)
def test_the_right_of_a_person_who_approved_is_looked_at_directly_before_the_tool_runs(
    ran: list[Any], lost: str
) -> None:
    join("finance", "olive", "pia")
    ask_groups()
    asked.approve(asked.OLIVE)
    refund = Call(key=asked.ADA, tool="kb__search", arguments=asked.REFUND)
    waiting = arrival.prepare(gates.CallGate(refund, may_ask=True))
    assert isinstance(waiting, gates.Admitted)
    LOST[lost](auth.User.objects.get(username="olive"))
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(waiting)
    assert denied.value.refusal.code == "approval-pending"
    assert asked.states() == ["withdrawn", "pending"]


def test_an_account_that_may_not_decide_approves_nothing_by_command_either(ran: list[Any]) -> None:
    auth.User.objects.create_user("olive")
    asked.call()
    with pytest.raises(errors.Refused, match="The account olive may not decide"):
        asked.approve(writing.by("olive", via="command"))
    asked.approve(writing.by("root", via="command"))
    assert asked.code(asked.call()) == "ok"


def test_a_call_runs_as_long_as_enough_of_those_who_approved_it_may(ran: list[Any]) -> None:
    join("finance", "olive", "pia")
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    asked.call()
    asked.approve(asked.OLIVE)
    asked.approve(asked.PIA)
    olive = auth.User.objects.get(username="olive")
    # By another way.
    olive.user_permissions.clear()
    olive.is_superuser = True
    olive.save()
    assert asked.code(asked.call()) == "ok"


def test_where_several_rules_ask_each_gets_its_own_people(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "legal", "effect": "ask", "approvers": ["legal", "board"]})
    join("finance", "olive")
    join("board", "pia")
    ask_groups()
    assert asked.approve(asked.OLIVE).state == "pending"
    assert asked.approve(asked.PIA).state == "approved"


def test_a_change_of_the_groups_asks_again(ran: list[Any]) -> None:
    join("finance", "olive")
    ask_groups()
    asked.approve(asked.OLIVE)
    entries.put(OPERATOR, "gate_rule", {**asked.RULE, "approvers": ["board"]})
    assert asked.code(asked.call()) == "approval-pending"
    assert asked.states() == ["withdrawn", "pending"]
