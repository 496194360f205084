"""Tests that gate rules are judged on every road to a tool, by the arguments that the tool gets, and are recorded."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.runtime import sample_plugins
from tests.runtime.calls import asked, test_server_calls
from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.core import admitting
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions, arrival, gates, incoming, last_checks
from toolbelt.runtime.calls.incoming import Call, Caller, RequestKey
from toolbelt.store import clock

RULE: dict[str, Any] = {
    "key": "no-secrets",
    "effect": "deny",
    "when": {"query": {"pattern": "secret"}},
    "reason": "Search for something else.",
}
BELT: dict[str, Any] = {
    **asked.ROADS,
    "gate_rules": [
        RULE,
        {"key": "no-plain", "effect": "deny", "tools": ["kb__plain"]},
        {"key": "watch-x", "effect": "deny", "observed": True, "when": {"query": {"pattern": "x"}}},
        {"key": "watch-y", "effect": "deny", "observed": True, "when": {"query": {"pattern": "y"}}},
    ],
}
SECRET, PLAIN = {"query": "my secret xy"}, {"query": "y"}
ADA = RequestKey("ada")


@pytest.fixture
def kb(db: None, install: Install) -> None:
    install("Kb", config="api_key: sesame-2000", **BELT)


def record() -> models.CallRecord:
    return models.CallRecord.objects.latest("id")


def code(answer: Any) -> str:
    return answer.code if isinstance(answer, admitting.Refusal) else "ok"


def call(tool: str, arguments: Any, key: RequestKey = ADA, **about: Any) -> Call:
    return Call(key=key, tool=tool, arguments=arguments, **about)


ROADS: dict[str, Callable[[Any], Any]] = {
    "a program": lambda given: calls.run("ada", "kb__search", given),
    "an event loop": lambda given: async_to_sync(calls.arun)("ada", "kb__search", given),
    "a session": lambda given: calls.run("ada", "kb__search", given, session="s"),
    "a dispatched call": lambda given: calls.answer_blocking(
        call("call_tool", {"tool": "kb__search", "arguments": given}, by_dispatch=True)
    ),
    "a host, for an app": lambda given: calls.answer_blocking(call("kb__search", given, by_host=True)),
    "an admission": lambda given: admissions.admit(call("shop__find", given)),
    "a question whether it is admitted": lambda given: calls.admit(ADA, "kb__search", given),
    "a call that waited for its user": lambda given: calls.check_again(
        call("kb__search", given), incoming.PROGRAM
    ),
}


@pytest.mark.parametrize("road", ROADS)
def test_each_road_to_a_tool_is_judged(kb: None, road: str) -> None:
    assert code(ROADS[road](SECRET)) == "denied-by-rule"
    assert code(ROADS[road](PLAIN)) == "ok"


def test_a_subagent_is_judged_by_its_agents_rules(kb: None) -> None:
    entries.change(OPERATOR, "gate_rule", "no-secrets", {"agents": ["ada"]})
    entries.put(OPERATOR, "loadout", {"name": "full", "plugins": ["kb"]})
    key = RequestKey("ada", subagent="general")
    assert code(calls.answer_blocking(call("kb__search", SECRET, key))) == "denied-by-rule"
    assert record().subagent == "general"
    assert code(calls.answer_blocking(call("kb__search", PLAIN, key))) == "ok"


def test_a_tool_that_is_only_loadable_is_judged_when_it_is_dispatched(kb: None) -> None:
    dispatched = call("call_tool", {"tool": "kb__plain", "arguments": {}}, by_dispatch=True)
    assert code(calls.answer_blocking(dispatched)) == "denied-by-rule"
    assert (record().tool, record().rule, record().dispatched) == ("kb__plain", "no-plain", True)


def test_a_denied_call_is_recorded_with_its_rule_and_the_observed_ones_and_without_arguments(
    kb: None,
) -> None:
    answer = calls.run("ada", "kb__search", SECRET)
    assert isinstance(answer, admitting.Refusal)
    assert answer.document() == {
        "is_error": True,
        "code": "denied-by-rule",
        "message": "Search for something else.",
    }
    made = record()
    assert (made.outcome, made.rule, made.would) == ("denied-by-rule", "no-secrets", "watch-x watch-y")
    assert made.error == "The rule no-secrets denies it: Search for something else."
    # The tool's state is not the reason.
    assert made.reason == "always-on"


def test_an_observed_rule_is_recorded_and_refuses_nothing(kb: None) -> None:
    assert code(calls.run("ada", "kb__search", PLAIN)) == "ok"
    assert (record().outcome, record().rule, record().would) == ("ok", "", "watch-y")
    assert code(admissions.admit(call("shop__find", PLAIN))) == "ok"
    assert (record().outcome, record().would) == ("admitted", "watch-y")
    calls.run("ada", "kb__search", {"query": "z"})
    assert (record().rule, record().would) == ("", "")


def test_a_rule_that_names_itself_is_named_to_the_model(kb: None) -> None:
    entries.change(OPERATOR, "gate_rule", "no-secrets", {"announce": True, "reason": None})
    answer = calls.run("ada", "kb__search", SECRET)
    assert isinstance(answer, admitting.Refusal)
    assert answer.document()["rule"] == "no-secrets"
    assert answer.message == (
        "A rule denies this call of kb__search. Call it in another way, or go on without it."
    )


def test_a_rule_applies_to_the_next_call_and_not_after_its_end(kb: None) -> None:
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    given = {"query": "fresh"}
    assert code(calls.run("ada", "kb__search", given)) == "ok"
    rule = {"key": "now", "effect": "deny", "tools": ["kb__search"]}
    entries.put(OPERATOR, "gate_rule", {**rule, "ends": f"{now + dt.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"})
    assert code(calls.run("ada", "kb__search", given)) == "denied-by-rule"
    entries.put(OPERATOR, "gate_rule", {**rule, "ends": f"{now - dt.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"})
    assert code(calls.run("ada", "kb__search", given)) == "ok"
    entries.put(OPERATOR, "gate_rule", rule)
    assert code(calls.run("ada", "kb__search", given)) == "denied-by-rule"
    entries.remove(OPERATOR, "gate_rule", "now")
    assert code(calls.run("ada", "kb__search", given)) == "ok"


@pytest.mark.parametrize("is_probed", [False, True])
def test_a_rule_that_allows_waives_nothing_for_a_call_that_waits_past_its_end(
    kb: None, is_probed: bool
) -> None:
    now = dt.datetime.now(dt.UTC)
    ends = (now + dt.timedelta(minutes=1)).isoformat()
    entries.put(OPERATOR, "gate_rule", {"key": "ask", "effect": "ask", "tools": ["kb__search"]})
    entries.put(OPERATOR, "gate_rule", {"key": "until-then", "effect": "allow", "ends": ends})
    caller = Caller(probe=test_server_calls.look() if is_probed else None)
    gate = gates.CallGate(call("kb__search", PLAIN), caller, may_ask=True)
    async_to_sync(gate.probe)()
    admitted = arrival.prepare(gate)
    assert isinstance(admitted, gates.Admitted)
    assert async_to_sync(gate.is_unchanged)() is is_probed
    last_checks.check_again(admitted)
    with clock.stopped(now + dt.timedelta(hours=1)):
        assert async_to_sync(gate.is_unchanged)() is False
        with pytest.raises(last_checks.DeniedError) as denied:
            last_checks.check_again(admitted)
    assert denied.value.refusal.code == "approval-pending"


@pytest.mark.django_db(transaction=True)
def test_a_call_that_waits_is_judged_again_directly_before_it_runs(install: Install, settings: Any) -> None:
    sample_plugins.reset()
    settings.TOOLBELT_CALLS_PER_PLUGIN = 1
    install("Kb", **{**BELT, "gate_rules": []})

    async def denied_while_queued() -> list[calls.Answer]:
        tasks = [asyncio.create_task(calls.arun("ada", "kb__hold", {}))]
        await until(lambda: sample_plugins.HOLDING)
        tasks += [asyncio.create_task(calls.arun("ada", "kb__hold", {})) for _ in range(3)]
        await until(lambda: calls._slots.waiting("kb") == 3)
        rule = {"key": "late", "effect": "deny", "tools": ["kb__hold"], "reason": "Not now."}
        await concurrently.do(lambda: entries.put(OPERATOR, "gate_rule", rule))
        sample_plugins.RELEASED.set()
        return list(await asyncio.gather(*tasks))

    answers = async_to_sync(denied_while_queued)()

    # The one that ran already ends.
    assert [code(answer) for answer in answers] == ["ok", *["denied-by-rule"] * 3]
    assert sample_plugins.HOLDING == [1]
    made = models.CallRecord.objects.filter(outcome="denied-by-rule").first()
    assert made is not None
    assert (made.rule, made.error) == ("late", "Denied while it waited: The rule late denies it: Not now.")


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 (the condition is set in other threads)
            await asyncio.sleep(0.01)


SERVER_SCHEMA = {
    "type": "object",
    "properties": {"limit": {"type": "integer", "default": 1000}},
    "required": ["limit"],
}


def test_the_arguments_are_judged_with_the_defaults_that_the_server_gets(kb: None) -> None:
    entries.put(
        OPERATOR,
        "plugin",
        {"name": "far", "namespace": "far", "upstream": {"url": "https://mcp.example.com/mcp"}},
    )
    entries.put(
        OPERATOR.replace(confirm=True),
        "tool",
        {"key": "far__list", "plugin": "far", "default_on": True, "input_schema": SERVER_SCHEMA},
    )
    entries.put(
        OPERATOR,
        "gate_rule",
        {"key": "few", "effect": "deny", "tools": ["far__list"], "unless": {"limit": {"maximum": 100}}},
    )
    for given, expected in (
        ({}, "denied-by-rule"),
        ({"limit": 100}, "ok"),
        ({"limit": 101}, "denied-by-rule"),
    ):
        assert code(calls.admit(ADA, "far__list", given)) == expected
    assert code(calls.check_again(call("far__list", {}), incoming.PROGRAM)) == "denied-by-rule"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"query": "sécret"}, "ok"),
        ({"query": "SECRET"}, "ok"),
        ({"query": "se\u0000cret"}, "ok"),
        ({"query": "a \ud800 secret"}, "denied-by-rule"),
        ({"query": "x" * 100_000 + "secret"}, "denied-by-rule"),
        ({"query": "a" * 5_000_000}, "denied-by-rule"),
        ({"query": ["secret"]}, "invalid-arguments"),
        ({"query": None}, "invalid-arguments"),
    ],
)
def test_texts_are_compared_as_they_are_and_what_is_not_certain_is_denied(
    kb: None, given: Any, expected: str
) -> None:
    assert code(calls.admit(ADA, "kb__search", given)) == expected


def test_a_retry_of_a_denied_call_is_denied_again(kb: None) -> None:
    for _ in range(3):
        assert code(calls.run("ada", "kb__search", SECRET)) == "denied-by-rule"
