"""Tests of checking a call before it is made: the answer is that of the call, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.calls import asked
from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.runtime import calls, plugins
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.records import record_writer


def check(tool: str = "kb__search", arguments: Any = asked.REFUND, *, ask: bool = False, **more: Any) -> Any:
    return calls.check(Call(key=asked.ADA, tool=tool, arguments=arguments, **more), ask=ask)


def left() -> tuple[Any, ...]:
    """Return what a call would leave behind: its record, requests to people, what was done to them."""
    record_writer.flush(5)
    approvals = models.Approval.objects.order_by("id").values_list("key", "state", "version")
    return models.CallRecord.objects.count(), list(approvals)


CHECKS: dict[str, tuple[str, Any, str, str]] = {
    "what no rule asks about": ("kb__search", {"query": "x", "amount": 5}, "run", ""),
    "what a rule asks about": ("kb__search", asked.REFUND, "wait", "approval-pending"),
    "what a rule denies": ("kb__search", {"query": "x", "amount": 9000}, "refuse", "denied-by-rule"),
    "arguments that do not fit": ("kb__search", {"query": 7}, "refuse", "invalid-arguments"),
    "a tool that can be loaded": ("kb__plain", {}, "refuse", "tool-not-active"),
    "an unknown tool": ("kb__none", {}, "refuse", "unknown-tool"),
    "a meta-tool": ("list_toolkits", {}, "run", ""),
    "a meta-tool with wrong arguments": ("load_tools", {}, "refuse", "invalid-arguments"),
    "a tool of the agent's program": ("shop__find", {"amount": 5}, "run", ""),
    "a tool of the agent's program that is asked about": (
        "shop__find",
        {"amount": 700},
        "wait",
        "approval-pending",
    ),
}


@pytest.mark.parametrize("checked", CHECKS)
def test_a_check_answers_as_the_call_and_leaves_nothing(ran: list[Any], checked: str) -> None:
    tool, arguments, would, code = CHECKS[checked]
    answer = check(tool, arguments)
    assert (answer.would, answer.document().get("code", "")) == (would, code)
    assert (ran, left()) == ([], (0, []))


def test_a_check_follows_an_approval_and_spends_nothing_of_it(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    assert check().document()["approval"]["id"] == approval.key
    call_approvals.edit_and_approve(asked.OLIVE, approval.key, {"amount": 600}, approval.shown)
    before = left()
    answer = check()
    assert (answer.would, answer.notice) == ("run", asked.latest().notice)
    assert left() == before
    assert asked.code(asked.call()) == "ok"
    assert check().would == "wait"


def test_a_check_of_a_version_that_toolbelt_does_not_run_asks_about_no_other_call(ran: list[Any]) -> None:
    asked.call()
    assert check(ask=True, version="junk").document()["approval"]["id"] == asked.latest().key
    call_approvals.reject(asked.OLIVE, asked.latest().key, "No.")
    assert check(ask=True, version="junk").document()["code"] == "approval-rejected"
    assert asked.code(asked.call()) == "approval-rejected"


def test_a_check_says_that_it_was_rejected_or_too_late_and_the_call_is_still_told_so(ran: list[Any]) -> None:
    asked.call()
    with asked.later(4000):
        before = left()
        assert [check().document()["code"] for _ in range(2)] == ["approval-expired"] * 2
        assert left() == before
        assert asked.code(asked.call()) == "approval-expired"
        assert asked.code(asked.call()) == "approval-pending"
    call_approvals.reject(asked.OLIVE, asked.latest().key, "No.")
    assert check().document()["code"] == "approval-rejected"


def test_a_check_withdraws_no_approval_whose_edit_a_new_rule_denies(ran: list[Any]) -> None:
    asked.call()
    approval = asked.latest()
    call_approvals.edit_and_approve(asked.OLIVE, approval.key, {"amount": 8000}, approval.shown)
    entries.put(
        OPERATOR, "gate_rule", {"key": "no-8000", "effect": "deny", "when": {"amount": {"minimum": 8000}}}
    )
    assert check().document()["code"] == "denied-by-rule"
    assert asked.states() == ["approved"]


def test_a_check_asks_people_only_if_it_is_told_to_and_the_call_then_finds_what_they_said(
    ran: list[Any],
) -> None:
    assert "approval" not in check().document()
    key = check(ask=True).document()["approval"]["id"]
    assert check(ask=True).document()["approval"]["id"] == key
    assert left() == (0, [(key, "pending", 0)])
    asked.approve()
    assert asked.code(asked.call()) == "ok"
    assert ran == [asked.REFUND]


def test_a_check_does_not_promise_what_no_process_runs_now(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "serves", lambda plugin, tool: False)
    answer = check(ask=True)
    assert (answer.would, answer.document()["code"]) == ("unknown", "tool-unavailable")
    assert left() == (0, [])
    assert check(arguments={"query": 7}).would == "refuse"


def test_a_call_through_call_tool_is_checked_as_the_tool_that_it_calls(ran: list[Any]) -> None:
    inner = {"tool": "kb__search", "arguments": asked.REFUND}
    key = RequestKey("ada")
    asked_ = calls.check(Call(key=key, tool="call_tool", arguments=inner, by_dispatch=True))
    assert asked_.would == "wait"
    wrong = calls.check(Call(key=key, tool="call_tool", arguments={}, by_dispatch=True))
    assert wrong.document()["code"] == "invalid-arguments"


def test_a_check_uses_up_no_quota(ran: list[Any]) -> None:
    quota = {"key": "one", "effect": "deny", "more_than": {"calls": 1, "per": "hour", "of": "agent"}}
    entries.put(OPERATOR, "gate_rule", quota)
    small = {"query": "x", "amount": 5}
    assert [check(arguments=small).would for _ in range(3)] == ["run"] * 3
    assert asked.code(asked.call(small)) == "ok"
    assert check(arguments=small).document()["code"] == "quota-reached"
