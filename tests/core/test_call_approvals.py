"""Tests of an approval's states: nothing runs without as many people as it needs, and nothing runs twice."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from toolbelt.core import call_approvals, catalog, errors
from toolbelt.core.request_key import RequestKey

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
ASKER = "pia"
PEOPLE = st.sampled_from(("olive", "otto", ASKER))


def rule(key: str = "r", **fields: Any) -> catalog.GateRule:
    return catalog.GateRule(key=key, effect="ask", **fields)


def asked(*rules: catalog.GateRule, at: dt.datetime = NOON, **fields: Any) -> call_approvals.Approval:
    preview = fields.pop("preview", {"amount": 700, "to": "[withheld]"})
    return call_approvals.request(
        RequestKey("ada"), "refund", rules or (rule(),), preview, at, asked_by=ASKER, **fields
    )


class Approvals(stateful.RuleBasedStateMachine):
    """One call that is made, decided about and made again, in any order and at any time."""

    @stateful.initialize(needed=st.integers(1, 2))
    def begin(self, needed: int) -> None:
        self.now, self.needed = NOON, needed
        self.approval: call_approvals.Approval | None = None
        # Who approved what the open request is about now; how often a yes was given, and how often the call ran.
        self.yes: set[str] = set()
        self.given = self.ran = 0
        self.rejected_until = NOON

    @stateful.rule()
    def call(self) -> None:
        before = self.approval
        match call_approvals.answer(before, self.now):
            case "ask":
                assert self.now >= self.rejected_until
                self.approval, self.yes = asked(rule(approvals=self.needed, expires=600), at=self.now), set()
            case "expired":
                assert before is not None
                self.approval = call_approvals.moved(before, "expired")
            case "run":
                assert before is not None
                assert len(self.yes - {ASKER}) == self.needed
                assert before.expires > self.now
                self.approval = call_approvals.moved(before, "spent", spent=self.now)
                self.ran += 1
            case "rejected":
                assert self.now < self.rejected_until
            case "pending":
                assert len(self.yes) < self.needed

    @stateful.precondition(lambda self: self.approval is not None)
    @stateful.rule(by=PEOPLE)
    def approve(self, by: str) -> None:
        assert self.approval is not None
        may = self.approval.state_at(self.now) == "pending" and by != ASKER and by not in self.yes
        if not may:
            with pytest.raises(errors.Refused):
                call_approvals.approve(self.approval, by, self.now)
            return
        self.approval = call_approvals.approve(self.approval, by, self.now)
        self.yes.add(by)
        if self.approval.state == "approved":
            self.given += 1

    @stateful.precondition(lambda self: self.approval is not None)
    @stateful.rule(by=PEOPLE)
    def reject(self, by: str) -> None:
        assert self.approval is not None
        if self.approval.state_at(self.now) != "pending" or by == ASKER:
            with pytest.raises(errors.Refused):
                call_approvals.reject(self.approval, by, self.now)
            return
        self.approval = call_approvals.reject(self.approval, by, self.now, "No.")
        self.rejected_until = self.now + dt.timedelta(seconds=600)

    @stateful.precondition(lambda self: self.approval is not None)
    @stateful.rule(by=PEOPLE, amount=st.sampled_from((600, 650)))
    def edit(self, by: str, amount: int) -> None:
        assert self.approval is not None
        if self.approval.state_at(self.now) != "pending" or by == ASKER:
            with pytest.raises(errors.Refused):
                call_approvals.edit(self.approval, by, self.now, {"amount": amount})
            return
        self.approval = call_approvals.edit(self.approval, by, self.now, {"amount": amount})
        self.yes.clear()

    @stateful.rule(seconds=st.sampled_from((1, 300, 599, 600)))
    def pass_time(self, seconds: int) -> None:
        self.now += dt.timedelta(seconds=seconds)

    @stateful.invariant()
    def it_ran_at_most_once_for_each_yes(self) -> None:
        if hasattr(self, "ran"):
            assert self.ran <= self.given


TestApprovals = Approvals.TestCase


def test_each_state_leads_only_to_those_that_come_next() -> None:
    for state in call_approvals.STATES:
        for other in call_approvals.STATES:
            approval = call_approvals.Approval(
                key="K",
                agent="ada",
                tool="t",
                rules=("r",),
                state=state,
                asked=NOON,
                expires=NOON,
                preview={},
            )
            if other in call_approvals.NEXT[state]:
                assert call_approvals.moved(approval, other).version == 1
            else:
                with pytest.raises(errors.Refused):
                    call_approvals.moved(approval, other)
    assert set(call_approvals.NEXT) == set(call_approvals.STATES)


def test_all_rules_that_ask_are_satisfied_in_the_time_of_the_one_with_the_least() -> None:
    made = asked(rule("b", approvals=3, expires=900), rule("a", expires=60), rule("c"), seconds=7200)
    assert (made.rules, made.needed, made.expires) == (("a", "b", "c"), 3, NOON + dt.timedelta(seconds=60))


def test_a_decision_holds_as_long_again_as_there_was_time_for_it() -> None:
    late = NOON + dt.timedelta(seconds=3599)
    for decided in (
        call_approvals.approve(asked(), "olive", late),
        call_approvals.reject(asked(), "olive", late),
    ):
        assert decided.expires == late + dt.timedelta(hours=1)


def test_what_is_not_shown_completely_cannot_be_edited() -> None:
    preview = {
        "a": "[withheld]",
        "b": {"c": ["x [withheld]"]},
        "d": {"[withheld]": 1},
        "e": [1],
        "f\ufffd": 1,
    }
    made = asked(preview=preview)
    assert made.hidden == {"a", "b", "d", "f\ufffd"}
    for name in made.hidden:
        with pytest.raises(errors.Invalid):
            call_approvals.edit(made, "olive", NOON, {name: 1})
    edited = call_approvals.edit(made, "olive", NOON, {"e": [2], "g": 3})
    assert edited.arguments == {**preview, "e": [2], "g": 3}
    assert edited.shown != made.shown


TOOL = catalog.Tool(key="refund", plugin="bank")


def binding(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "key": RequestKey("ada", "s"),
        "asked_by": "",
        "tool": TOOL,
        "version": "1",
        "options": {"account": 1},
        "arguments": {"amount": 700, "to": "ö"},
        "rules": (rule(), rule("q")),
        **changes,
    }
    return call_approvals.binding(*fields.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"key": RequestKey("bo", "s")},
        {"key": RequestKey("ada", None)},
        {"key": RequestKey("ada", "s", None, "task")},
        {"asked_by": "olive"},
        {"tool": catalog.Tool(key="refund", plugin="shop")},
        {"version": "2"},
        {"options": {"account": 2}},
        {"options": None},
        {"arguments": {"amount": 700, "to": "o\u0308"}},
        {"arguments": {"amount": "700", "to": "ö"}},
        {"arguments": {"amount": True, "to": "ö"}},
        {"arguments": {"amount": 700}},
        {"arguments": {"amount": 700, "to": "ö", "note": None}},
        {"rules": (rule(),)},
        {"rules": (rule(), rule("q", reason="x"))},
        {"rules": (rule(), rule("q", when='{"a":true}'))},
        {"rules": (rule(), rule("q", approvals=2))},
    ],
    ids=str,
)
def test_whatever_differs_is_another_call(changes: dict[str, Any]) -> None:
    assert binding(**changes) != binding()


@pytest.mark.parametrize(
    "changes",
    [
        {"key": RequestKey("ada", "s", "another request")},
        {"arguments": {"to": "ö", "amount": 700.0}},
        {"rules": (rule("q"), rule())},
    ],
    ids=str,
)
def test_the_same_json_of_the_same_caller_is_the_same_call(changes: dict[str, Any]) -> None:
    assert binding(**changes) == binding()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1}, {1: 2}, b"x", "\ud800", 1 << 9**5], ids=type
)
def test_what_is_not_json_has_no_binding(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        binding(arguments={"amount": value})


def test_large_whole_numbers_are_told_apart() -> None:
    assert binding(arguments={"a": 2**53 + 1}) != binding(arguments={"a": float(2**53)})
