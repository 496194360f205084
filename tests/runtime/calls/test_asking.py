"""Tests that a call that rules ask about runs once for each approval, with what was approved, and never without one."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.runtime import sample_plugins
from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import blocking, entries
from toolbelt.core import admitting, errors
from toolbelt.core import call_approvals as values
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions, approval_waits, asking, gates
from toolbelt.runtime.calls.incoming import Call, Caller, RequestKey
from toolbelt.runtime.records import recordings
from toolbelt.store import clock

RULE: dict[str, Any] = {
    "key": "over-500",
    "effect": "ask",
    "tools": ["kb__search", "shop__find"],
    "when": {"amount": {"exclusiveMinimum": 500}},
    "reason": "Refunds above 500 EUR need a person.",
}
BELT: dict[str, Any] = {
    "plugins": [{"name": "shop", "namespace": "shop"}],
    "tools": [{"key": "shop__find", "plugin": "shop"}],
    "toolkits": [{"key": "more", "members": ["kb__plain"]}],
    "agents": [
        {
            "key": "ada",
            "tools": ["kb__search", "kb__hold", "shop__find"],
            "allowed_toolkits": ["more"],
            "subagent_kinds": ["general"],
        },
        {"key": "bo", "tools": ["kb__search"]},
    ],
    "gate_rules": [
        RULE,
        {"key": "not-9000", "effect": "deny", "when": {"amount": {"type": "number", "minimum": 9000}}},
    ],
}
REFUND = {"query": "order 12", "amount": 700}
ADA = RequestKey("ada")
OLIVE, PIA = writing.by("olive", via="screen"), writing.by("pia", via="screen")


@pytest.fixture
def ran(db: None, install: Install, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the arguments with which the tool has run."""
    install("Kb", config="api_key: sesame-2000", **BELT)
    ran_: list[Any] = []

    async def search(self: Any, args: dict[str, Any]) -> Any:
        ran_.append(args)
        return {"results": []}

    monkeypatch.setattr(sample_plugins.Kb, "search", search)
    return ran_


def call(arguments: Any = REFUND, agent: str = "ada", **key: Any) -> Any:
    return calls.run(agent, "kb__search", arguments, **key)


def code(answer: Any) -> str:
    return answer.code if isinstance(answer, admitting.Refusal) else "ok"


def latest() -> values.Approval:
    return call_approvals.find(models.Approval.objects.latest("id").key)


def approve(by: writing.Write = OLIVE) -> values.Approval:
    approval = latest()
    return call_approvals.approve(by, approval.key, approval.shown)


def states() -> list[str]:
    return list(models.Approval.objects.order_by("id").values_list("state", flat=True))


def later(seconds: float) -> Any:
    return clock.stopped(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds))


def test_a_call_waits_for_a_person_and_runs_once_when_it_is_made_again(ran: list[Any]) -> None:
    answer = call()
    approval = latest()
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
    assert code(call()) == "approval-pending"
    assert states() == ["pending"]
    approve()
    assert code(call()) == "ok"
    assert ran == [REFUND]
    assert states() == ["done"]
    stored = models.Approval.objects.get()
    assert (stored.outcome, stored.approved_by) == ("ok", ["olive"])
    # It was spent: the next one is asked about anew.
    assert code(call()) == "approval-pending"
    assert states() == ["done", "pending"]
    assert ran == [REFUND]


def test_a_call_that_no_rule_asks_about_runs_at_once(ran: list[Any]) -> None:
    assert code(call({**REFUND, "amount": 500})) == "ok"
    assert states() == []


def test_the_record_names_the_rule_and_says_that_it_asked(ran: list[Any]) -> None:
    call()
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule, record.reason) == ("approval-pending", "over-500", "always-on")
    approve()
    call()
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule) == ("ok", "over-500")


SAME: dict[str, Any] = {
    "another order of names": {"amount": 700, "query": "order 12"},
    "a whole number with a fraction": {"query": "order 12", "amount": 700.0},
}
OTHER: dict[str, Any] = {
    "another value": {"query": "order 12", "amount": 701},
    "a value that is nearly the same": {"query": "order 12", "amount": 700.0000000001},
    "one more argument": {**REFUND, "note": ""},
    "another type": {"query": "order 12", "amount": "700"},
    "composed instead of decomposed letters": {"query": "o\u0308rder", "amount": 700},
    "true for 1": {**REFUND, "flag": True},
}


@pytest.mark.parametrize("arguments", SAME.values(), ids=SAME)
def test_the_same_arguments_in_another_encoding_have_the_same_approval(
    ran: list[Any], arguments: Any
) -> None:
    call()
    approve()
    assert code(call(arguments)) == "ok"
    assert states() == ["done"]


@pytest.mark.parametrize("arguments", OTHER.values(), ids=OTHER)
def test_other_arguments_are_asked_about_on_their_own(ran: list[Any], arguments: Any) -> None:
    call({**REFUND, "flag": 1} if "flag" in arguments else {**REFUND, "query": "\u00f6rder"})
    call()
    for approval in call_approvals.listed():
        call_approvals.approve(OLIVE, approval.key, approval.shown)
    assert code(call(arguments)) == "approval-pending"
    assert ran == []


CALLERS: dict[str, Callable[[], Any]] = {
    "another agent": lambda: call(agent="bo"),
    "another session": lambda: call(session="s"),
    "a subagent": lambda: calls.answer_blocking(
        Call(key=RequestKey("ada", subagent="general"), tool="kb__search", arguments=REFUND)
    ),
    "an operator's token": lambda: calls.answer_blocking(
        Call(key=ADA, tool="kb__search", arguments=REFUND), Caller(operator="olive")
    ),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_another_caller_has_no_approval(ran: list[Any], caller: str) -> None:
    entries.put(OPERATOR, "loadout", {"name": "full", "plugins": ["kb"]})
    call()
    approve()
    assert code(CALLERS[caller]()) == "approval-pending"
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
    call()
    approve()
    CHANGES[change]()
    assert code(call()) == "approval-pending"
    assert ran == []
    # People are not asked about the one before any more.
    assert states() == ["withdrawn", "pending"]


DENIALS: dict[str, Callable[[], object]] = {
    "blocked": lambda: blocking.set_blocked(OPERATOR, "tool", "kb__search", True),
    "off": lambda: switches.override(OPERATOR.replace(confirm=True), "ada", "kb__search", False),
    "denied by a rule": lambda: entries.put(
        OPERATOR, "gate_rule", {"key": "no", "effect": "deny", "tools": ["kb__search"]}
    ),
}


@pytest.mark.parametrize("denial", DENIALS)
def test_an_approval_never_revives_what_is_denied(ran: list[Any], denial: str) -> None:
    call()
    approve()
    DENIALS[denial]()
    assert code(call()) in ("tool-denied", "denied-by-rule")
    assert ran == []
    assert states() == ["approved"]


def test_a_rejection_holds_until_it_has_passed_and_is_not_asked_about_again(ran: list[Any]) -> None:
    call()
    call_approvals.reject(OLIVE, latest().key, "Not without a ticket.")
    for _ in range(2):
        answer = call()
        assert (answer.code, answer.message) == (
            "approval-rejected",
            "An operator rejected this call of kb__search: Not without a ticket.",
        )
    assert states() == ["rejected"]
    with later(3700):
        assert code(call()) == "approval-pending"
    assert states() == ["expired", "pending"]
    assert ran == []


def test_silence_denies_and_the_next_call_asks_anew(ran: list[Any]) -> None:
    call()
    with later(3700):
        with pytest.raises(errors.Refused):
            approve()
        assert code(call()) == "approval-expired"
        assert states() == ["expired"]
        assert code(call()) == "approval-pending"
    assert states() == ["expired", "pending"]


def test_an_approval_that_is_not_used_in_time_expires(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"expires": 60})
    call()
    approve()
    with later(61):
        assert code(call()) == "approval-expired"
    assert ran == []


def test_too_many_calls_cannot_wait(ran: list[Any]) -> None:
    for number in range(values.MAX_OF_SESSION):
        assert code(call({**REFUND, "n": number}, session="s")) == "approval-pending"
    assert code(call({**REFUND, "n": 99}, session="s")) == "too-many-approvals"
    # The others still have their answers, and other sessions ask.
    assert code(call({**REFUND, "n": 0}, session="s")) == "approval-pending"
    assert code(call({**REFUND, "n": 99}, session="t")) == "approval-pending"
    for number in range(values.MAX_OF_AGENT):
        call({**REFUND, "m": number})
    assert code(call({**REFUND, "m": 99})) == "too-many-approvals"
    assert models.Approval.objects.count() == values.MAX_OF_AGENT
    assert code(call(agent="bo")) == "approval-pending"


def test_what_people_cannot_read_they_are_not_asked_about(ran: list[Any]) -> None:
    assert code(call({**REFUND, "query": "x" * values.MAX_PREVIEW})) == "invalid-arguments"
    assert code(call({**REFUND, "n": float("inf")})) == "invalid-arguments"
    assert states() == []


def test_no_secret_is_stored_and_none_can_be_edited(ran: list[Any]) -> None:
    call({**REFUND, "password": "hunter2-hunter2"})
    row = models.Approval.objects.values().get()
    assert "hunter2" not in str(row)
    approval = latest()
    with pytest.raises(errors.Invalid) as refused:
        call_approvals.edit(OLIVE, approval.key, {"password": "other"}, approval.shown)
    assert refused.value.problems[0].path == "password"
    with pytest.raises(errors.Invalid):
        call_approvals.edit(OLIVE, approval.key, {"api_key": "sk-ant-api03-0123456789abcdef"}, approval.shown)
    approve()
    assert code(call({**REFUND, "password": "hunter3-hunter3"})) == "approval-pending"
    assert code(call({**REFUND, "password": "hunter2-hunter2"})) == "ok"
    assert [args["password"] for args in ran] == ["hunter2-hunter2"]


def test_an_operator_changes_arguments_and_the_tool_gets_those(ran: list[Any]) -> None:
    call()
    approval = latest()
    call_approvals.edit(OLIVE, approval.key, {"amount": 600}, approval.shown)
    assert code(call()) == "approval-pending"
    approve(PIA)
    assert code(call()) == "ok"
    assert ran == [{**REFUND, "amount": 600}]
    stored = models.Approval.objects.get()
    assert (stored.state, stored.edited, stored.edited_by) == ("done", {"amount": 600}, "olive")
    assert stored.edited_digest not in ("", stored.digest)
    # What was called is what the approval is for, not what it became.
    assert code(call({**REFUND, "amount": 600})) == "approval-pending"


def test_nobody_approves_what_they_did_not_see(ran: list[Any]) -> None:
    call()
    seen = latest()
    call_approvals.edit(PIA, seen.key, {"amount": 600}, seen.shown)
    with pytest.raises(errors.Stale):
        call_approvals.approve(OLIVE, seen.key, seen.shown)
    with pytest.raises(errors.Stale):
        call_approvals.edit(OLIVE, seen.key, {"amount": 650}, seen.shown)
    assert states() == ["pending"]


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
    call()
    approval = latest()
    with pytest.raises((errors.Invalid, errors.Refused)):
        call_approvals.edit(OLIVE, approval.key, EDITS[edit], approval.shown)
    assert latest().edited == {}


def test_edited_arguments_are_checked_again_before_the_tool_runs(ran: list[Any]) -> None:
    call()
    approval = latest()
    call_approvals.edit(OLIVE, approval.key, {"amount": 8000}, approval.shown)
    approve()
    rule = {"key": "no-8000", "effect": "deny", "when": {"amount": {"minimum": 8000}}}
    entries.put(OPERATOR, "gate_rule", rule)
    assert code(call()) == "denied-by-rule"
    assert ran == []
    assert states() == ["withdrawn"]


def test_two_people_have_to_approve_and_an_edit_starts_again(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    call()
    approve(OLIVE)
    with pytest.raises(errors.Refused):
        approve(OLIVE)
    assert code(call()) == "approval-pending"
    call_approvals.edit(PIA, latest().key, {"amount": 600}, latest().shown)
    assert latest().approved_by == ()
    approve(PIA)
    assert code(call()) == "approval-pending"
    assert approve(OLIVE).state == "approved"
    assert code(call()) == "ok"
    assert len(ran) == 1


def test_the_person_behind_a_token_does_not_decide_about_its_calls(ran: list[Any]) -> None:
    made = Call(key=ADA, tool="kb__search", arguments=REFUND)
    assert code(calls.answer_blocking(made, Caller(operator="olive"))) == "approval-pending"
    with pytest.raises(errors.Refused):
        approve(OLIVE)
    with pytest.raises(errors.Refused):
        call_approvals.edit(OLIVE, latest().key, {"amount": 600}, latest().shown)
    approve(PIA)
    assert code(calls.answer_blocking(made, Caller(operator="olive"))) == "ok"


def test_only_people_decide(ran: list[Any]) -> None:
    call()
    for kind in ("agent", "server", "client", "clock"):
        other = writing.Write(actor=writing.Actor(name="ada", via="api", kind=kind))  # type: ignore[arg-type]
        with pytest.raises(errors.Refused):
            approve(other)
    assert states() == ["pending"]


def test_each_decision_is_in_the_audit_log_and_cannot_be_undone(ran: list[Any]) -> None:
    call()
    approval = latest()
    call_approvals.edit(OLIVE, approval.key, {"amount": 600}, approval.shown)
    call_approvals.reject(PIA, approval.key, "Ask again.")
    logged = models.AuditEntry.objects.filter(subject_kind="approval").order_by("id")
    assert [(entry.action, entry.actor, entry.subject_key, entry.key) for entry in logged] == [
        ("approval.edit", "olive", approval.key, "kb__search"),
        ("approval.reject", "pia", approval.key, "kb__search"),
    ]
    assert logged[0].after["edited"] == ["amount"]
    assert "600" not in str(logged[0].after)
    assert (logged[1].after["note"], logged[1].after["shown"]) == ("Ask again.", latest().shown)


def test_a_dispatched_call_is_asked_about_as_the_tool_that_it_calls(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "plain", "effect": "ask", "tools": ["kb__plain"]})
    made = Call(key=ADA, tool="call_tool", arguments={"tool": "kb__plain", "arguments": {}}, by_dispatch=True)
    assert code(calls.answer_blocking(made)) == "approval-pending"
    assert latest().tool == "kb__plain"
    approve()
    assert code(calls.answer_blocking(made)) == "ok"
    assert code(calls.answer_blocking(made)) == "approval-pending"


def test_a_question_whether_a_call_is_admitted_asks_no_one(ran: list[Any]) -> None:
    assert code(calls.admit(ADA, "kb__search", REFUND)) == "approval-pending"
    assert states() == []


def test_a_rule_that_allows_waives_the_question_and_the_record_says_so(ran: list[Any]) -> None:
    entries.put(OPERATOR, "gate_rule", {"key": "night", "effect": "allow", "tools": ["kb__search"]})
    assert code(call()) == "ok"
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.rule) == ("ok", "night")
    assert states() == []


def test_an_observed_rule_asks_no_one_and_is_recorded(ran: list[Any]) -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"observed": True})
    assert code(call()) == "ok"
    assert models.CallRecord.objects.latest("id").would == "over-500"


def test_an_agents_own_program_runs_what_was_approved_once(ran: list[Any]) -> None:
    made = Call(key=ADA, tool="shop__find", arguments=REFUND)
    assert code(admissions.admit(made)) == "approval-pending"
    approval = latest()
    with pytest.raises(errors.Refused):
        call_approvals.edit(OLIVE, approval.key, {"amount": 600}, approval.shown)
    approve()
    admitted = admissions.admit(made)
    assert isinstance(admitted, admissions.Admission)
    assert states() == ["spent"]
    assert code(admissions.admit(made)) == "approval-pending"
    admissions.report("ada", admitted.call_id, "ok")
    assert models.Approval.objects.get(key=approval.key).outcome == "ok"


def test_no_one_is_asked_about_a_call_that_could_not_run(ran: list[Any]) -> None:
    assert code(calls.run("ada", "shop__find", REFUND)) == "run-by-client"
    assert code(admissions.admit(Call(key=ADA, tool="kb__search", arguments=REFUND))) == "run-by-toolbelt"
    assert states() == []


def test_a_new_agent_of_the_same_name_has_no_approvals(ran: list[Any]) -> None:
    call(agent="bo")
    approve()
    entries.remove(OPERATOR.replace(confirm=True), "agent", "bo")
    entries.put(OPERATOR, "agent", {"key": "bo", "tools": ["kb__search"]})
    assert code(call(agent="bo")) == "approval-pending"


def test_old_approvals_go_with_old_records_of_calls(ran: list[Any]) -> None:
    call()
    call_approvals.reject(OLIVE, latest().key)
    recordings.prune(dt.timedelta(0))
    # A rejection is in force until it has passed.
    assert states() == ["rejected"]
    with later(7300):
        recordings.prune(dt.timedelta(0))
    assert states() == []


def test_a_detail_says_what_changed_since_the_last_one(ran: list[Any]) -> None:
    call({**REFUND, "note": "x"})
    call_approvals.reject(OLIVE, latest().key)
    call({"query": "order 12", "amount": 800, "token": "abcdef-abcdef"})
    detail = call_approvals.detail(latest().key)
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
    call()
    call({**REFUND, "amount": 800})
    shown = {approval.key: approval.shown for approval in call_approvals.listed()}
    first, second = shown
    with pytest.raises(errors.Stale):
        call_approvals.approve_all(OLIVE, {first: shown[first], second: "other"})
    assert states() == ["pending", "pending"]
    call_approvals.approve_all(OLIVE, shown)
    assert states() == ["approved", "approved"]
    assert len({entry.batch for entry in models.AuditEntry.objects.filter(action="approval.approve")}) == 1


@pytest.mark.django_db(transaction=True)
def test_a_call_waits_without_a_slot_and_runs_as_soon_as_it_is_approved(
    transactional_db: None, ran: list[Any], settings: Any
) -> None:
    settings.TOOLBELT_CALLS_PER_PLUGIN = 1

    async def act() -> None:
        waits = [asyncio.create_task(calls.arun("ada", "kb__search", REFUND, wait=30)) for _ in range(3)]
        async with asyncio.timeout(20):
            while approval_waits.waiting() < 3:  # noqa: ASYNC110 (set by other tasks)
                await asyncio.sleep(0.01)
            # Its slot is free for another call.
            assert code(await calls.arun("ada", "kb__search", {"query": "x"})) == "ok"
            await concurrently.do(approve)
            # One of three spends it, and the others wait for another approval.
            done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert [code(task.result()) for task in done if code(task.result()) == "ok"] == ["ok"]
        for task in others:
            task.cancel()
        await asyncio.wait(others)

    async_to_sync(act)()
    assert ran == [{"query": "x"}, REFUND]
    assert approval_waits.waiting() == 0


@pytest.mark.django_db(transaction=True)
def test_a_wait_ends_with_a_rejection_with_silence_and_when_too_many_wait(
    transactional_db: None, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        waiting = asyncio.create_task(calls.arun("ada", "kb__search", REFUND, wait=30))
        async with asyncio.timeout(20):
            while not approval_waits.waiting():  # noqa: ASYNC110 (set by another task)
                await asyncio.sleep(0.01)
            await concurrently.do(lambda: call_approvals.reject(OLIVE, latest().key))
            assert code(await waiting) == "approval-rejected"
            assert code(await calls.arun("bo", "kb__search", REFUND, wait=0.1)) == "approval-pending"
            await concurrently.do(lambda: entries.put(OPERATOR, "gate_rule", {**RULE, "expires": 1}))
            assert code(await calls.arun("bo", "kb__search", REFUND, wait=30)) == "approval-expired"
            monkeypatch.setattr(approval_waits, "MAX_WAITING", 0)
            assert code(await calls.arun("bo", "kb__search", REFUND, wait=30)) == "approval-pending"

    async_to_sync(act)()
    assert ran == []


@pytest.mark.django_db(transaction=True)
def test_of_calls_at_the_same_time_one_spends_an_approval(transactional_db: None, ran: list[Any]) -> None:
    call()
    approve()
    answers = [code(answer) for answer in concurrently.done([call] * 6)]
    assert sorted(answers).count("ok") == 1
    assert set(answers) == {"ok", "approval-pending"}
    assert len(ran) == 1
    assert states() == ["done", "pending"]


@pytest.mark.django_db(transaction=True)
def test_of_decisions_at_the_same_time_one_counts(transactional_db: None, ran: list[Any]) -> None:
    call()
    seen = latest()
    acts = [
        lambda: call_approvals.approve(OLIVE, seen.key, seen.shown),
        lambda: call_approvals.reject(PIA, seen.key),
        lambda: call_approvals.edit(PIA, seen.key, {"amount": 600}, seen.shown),
    ]
    done = [answer for answer in concurrently.done(acts) if not isinstance(answer, Exception)]
    now = latest()
    assert now.version == len(done)
    assert (now.state, bool(now.edited)) != ("approved", True)


def admitted(arguments: Any = REFUND) -> gates.Admitted:
    """Return a call that was approved, before its last check."""
    gate = gates.CallGate(Call(key=ADA, tool="kb__search", arguments=arguments), may_ask=True)
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
    call()
    approve()
    one, other = admitted(), admitted()
    gates.check_again(one)
    # Its server was not reached, or asks its user something.
    gates.check_again(one)
    with pytest.raises(gates.DeniedError) as denied:
        gates.check_again(other)
    assert denied.value.refusal.code == "approval-pending"
    assert states() == ["spent", "pending"]
    # What was changed meanwhile applies to the second attempt as well.
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    with pytest.raises(gates.DeniedError):
        gates.check_again(one)


def test_an_approval_is_spent_in_the_check_before_the_tool_runs(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call()
    approve()
    spend = asking.spend

    def change_first(approval: values.Approval, arguments: Any, call_id: str = "") -> bool:
        # Someone else was faster.
        models.Approval.objects.update(state="withdrawn", version=9)
        return spend(approval, arguments, call_id)

    monkeypatch.setattr(asking, "spend", change_first)
    assert code(call()) == "tool-unavailable"
    assert ran == []
