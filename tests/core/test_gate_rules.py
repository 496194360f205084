"""Tests of gate rules: whom and what they concern, what they decide together, and their traces."""

from __future__ import annotations

import ast
import dataclasses
import datetime as dt
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolbelt
from toolbelt.core import agents, call_limits, catalog, conditions, gate_rules, outcomes

ADA, BO = agents.Agent(key="ada"), agents.Agent(key="bo", kind="plan")
NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
OVER_500 = json.dumps({"amount": {"exclusiveMinimum": 500}})


def rule(key: str, effect: catalog.Effect = "deny", **fields: Any) -> catalog.GateRule:
    return catalog.GateRule(key=key, effect=effect, **fields)


def stored(*rules: catalog.GateRule) -> catalog.Catalog:
    return catalog.compile_(
        plugins=[catalog.Plugin(name="bank", namespace="bank")],
        tools=[
            catalog.Tool(key="bank__refund", plugin="bank"),
            catalog.Tool(key="read", annotations='{"readOnlyHint":true}'),
            catalog.Tool(key="note", annotations='{"destructiveHint":false}'),
        ],
        toolkits=[catalog.Toolkit(key="desk", members=(catalog.Member(tool="note"),))],
        sub_apps=[catalog.SubApp(key="room", agents=("ada",))],
        gate_rules=rules,
    )


def judged(*rules: catalog.GateRule, tool: str = "bank__refund", **fields: Any) -> gate_rules.Judgement:
    arguments = fields.pop("arguments", {})
    return gate_rules.judge(stored(*rules), fields.pop("agent", ADA), tool, arguments, **fields)


def is_denied(*rules: catalog.GateRule, **fields: Any) -> bool:
    return judged(*rules, **fields).denied_by is not None


@pytest.mark.parametrize(
    ("fields", "covered"),
    [
        ({}, {"bank__refund", "read", "note"}),
        ({"tools": ("bank__*",)}, {"bank__refund"}),
        ({"tools": ("BANK__refund", "read")}, {"bank__refund", "read"}),
        ({"tools": ("*",)}, {"bank__refund", "read", "note"}),
        ({"toolkits": ("desk",)}, {"note"}),
        ({"plugins": ("bank",)}, {"bank__refund"}),
        ({"risks": ("writes",)}, {"note"}),
        ({"risks": ("unstated",), "toolkits": ("desk",)}, {"bank__refund", "note"}),
        ({"tools": ("ghost",), "toolkits": ("ghost",), "plugins": ("ghost",)}, set()),
    ],
)
def test_a_rule_covers_tools_by_any_of_its_names(fields: dict[str, Any], covered: set[str]) -> None:
    made = rule("r", **fields)
    assert {tool for tool in stored().tools if is_denied(made, tool=tool)} == covered
    assert {tool.key for tool in gate_rules.tools_of(stored(), made)} == covered


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({}, {"ada", "bo"}),
        ({"agents": ("ada",)}, {"ada"}),
        ({"kinds": ("plan",)}, {"bo"}),
        ({"sub_apps": ("room",)}, {"ada"}),
        ({"agents": ("bo",), "sub_apps": ("room",)}, {"ada", "bo"}),
        ({"agents": ("ghost",), "sub_apps": ("ghost",)}, set()),
    ],
)
def test_a_rule_concerns_agents_by_any_of_its_names(fields: dict[str, Any], who: set[str]) -> None:
    made = rule("r", **fields)
    assert {agent.key for agent in (ADA, BO) if is_denied(made, agent=agent)} == who
    assert {agent.key for agent in gate_rules.agents_of(stored(), made, (ADA, BO))} == who


def test_no_agent_gets_a_rule_that_allows_by_the_kind_of_subagent_that_it_states() -> None:
    denies, allows = rule("d", kinds=("plan",)), rule("a", "allow", kinds=("plan",))
    assert gate_rules.concerns(stored(), denies, ADA, "plan")
    assert not gate_rules.concerns(stored(), allows, ADA, "plan")
    assert gate_rules.concerns(stored(), allows, BO)


def test_a_rule_that_denies_applies_if_that_is_unknown() -> None:
    unknown = {"amount": float("nan")}
    assert is_denied(rule("r", when=OVER_500), arguments=unknown)
    assert is_denied(rule("r", unless=OVER_500), arguments=unknown)
    assert is_denied(rule("r", when="{"), arguments={})
    assert is_denied(rule("r", unless="{"), arguments={})
    assert is_denied(rule("r", when=OVER_500, unless=OVER_500), arguments=unknown)
    # Of another type: a server may read it as a number.
    assert is_denied(rule("r", when=OVER_500), arguments={"amount": "1"})
    assert is_denied(rule("r", unless=OVER_500), arguments={"amount": "1000"})


def test_the_steps_are_shared_by_all_rules_and_none_are_left_for_the_last() -> None:
    slow = json.dumps({"memo": {"pattern": "(a|b)+c$"}})
    rules = [rule("slow", when=slow, observed=True), rule("last", when=OVER_500)]
    arguments = {"memo": "ab" * 1_000_000, "amount": 1}
    answer = judged(*rules, arguments=arguments)
    assert (answer.denied_by, answer.would) == (rules[1], ("slow",))
    with pytest.raises(conditions.TooComplexError):
        judged(*rules, arguments=arguments, is_quick=True)


def test_an_observed_rule_is_noted_beside_the_one_that_denies() -> None:
    watched = rule("w", observed=True)
    assert judged(watched) == gate_rules.Judgement(would=("w",))
    denies = rule("d")
    assert judged(denies, watched) == gate_rules.Judgement(denied_by=denies, would=("w",))


def test_a_rule_ends_at_its_time() -> None:
    ending = rule("r", ends=NOON)
    assert is_denied(ending, at=NOON - dt.timedelta(seconds=1))
    assert not is_denied(ending, at=NOON)
    # Without a clock, none has ended.
    assert is_denied(ending)


some_conditions = st.sampled_from(
    ("", OVER_500, '{"amount":{"const":1}}', '{"to":{"pattern":"a"}}', '{"not":{"required":["to"]}}', "{")
)
some_rules = st.builds(
    catalog.GateRule,
    key=st.sampled_from("abcdefgh"),
    effect=st.sampled_from(catalog.EFFECTS),
    agents=st.sampled_from(((), (), ("ada",), ("bo",))),
    kinds=st.sampled_from(((), (), ("plan",))),
    tools=st.sampled_from(((), ("bank__*",), ("read",))),
    risks=st.sampled_from(((), (), ("writes",))),
    when=some_conditions,
    unless=some_conditions,
    observed=st.sampled_from((False, False, True)),
    ends=st.sampled_from((None, None, NOON)),
)
some_calls = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(("bank__refund", "read", "note")),
        "agent": st.sampled_from((ADA, BO)),
        "subagent": st.sampled_from(("", "plan")),
        "arguments": st.fixed_dictionaries(
            {},
            optional={"amount": st.sampled_from((1, 501, "501", None)), "to": st.sampled_from(("a", "b", 1))},
        ),
        "at": st.sampled_from((None, NOON, NOON - dt.timedelta(1))),
    }
)


@given(st.lists(some_rules, max_size=4, unique_by=lambda made: made.key), some_calls)
def test_the_order_of_rules_makes_no_difference(rules: list[catalog.GateRule], call: dict[str, Any]) -> None:
    answers = {
        (is_denied(*order, **call), frozenset(judged(*order, **call).would))
        for order in itertools.permutations(rules)
    }
    assert len(answers) == 1


@given(st.lists(some_rules, max_size=4, unique_by=lambda made: made.key), some_rules, some_calls)
def test_one_more_rule_never_permits_a_call_and_one_that_allows_or_is_observed_never_denies_one(
    rules: list[catalog.GateRule], further: catalog.GateRule, call: dict[str, Any]
) -> None:
    further = dataclasses.replace(further, key="z")
    before, after = is_denied(*rules, **call), is_denied(*rules, further, **call)
    assert after >= before
    if further.effect == "allow" or further.observed:
        assert after == before


OUTCOMES = ("runs", "asks", "denies")


def outcome(*rules: catalog.GateRule, **call: Any) -> int:
    """Return what becomes of a call, as its position in OUTCOMES: the later, the less it may."""
    judgement = judged(*rules, **call)
    return 2 if judgement.denied_by is not None else 1 if judgement.asked_by else 0


@given(st.lists(some_rules, max_size=5, unique_by=lambda made: made.key), some_calls)
def test_a_denial_decides_then_what_allows_waives_what_asks(
    rules: list[catalog.GateRule], call: dict[str, Any]
) -> None:
    fields = {name: call[name] for name in ("subagent", "at")}
    steps = gate_rules.explain(stored(*rules), call["agent"], call["tool"], call["arguments"], **fields)
    in_force = {
        step.rule.effect
        for step in steps
        if not step.rule.observed
        and (step.answer == "applies" or (step.answer == "unknown" and step.rule.effect != "allow"))
    }
    expected = 2 if "deny" in in_force else 1 if in_force == {"ask"} else 0
    assert OUTCOMES[outcome(*rules, **call)] == OUTCOMES[expected]


@given(st.lists(some_rules, max_size=4, unique_by=lambda made: made.key), some_rules, some_calls)
def test_one_more_rule_that_denies_or_asks_never_permits_more_and_one_that_allows_never_permits_less(
    rules: list[catalog.GateRule], further: catalog.GateRule, call: dict[str, Any]
) -> None:
    further = dataclasses.replace(further, key="z")
    before, after = outcome(*rules, **call), outcome(*rules, further, **call)
    if further.observed:
        assert after == before
    elif further.effect == "allow":
        assert after <= before
        assert (after == 2) == (before == 2)
    else:
        assert after >= before


def test_all_rules_that_ask_are_named_and_the_one_that_waives_them() -> None:
    one, other, calm = rule("a", "ask"), rule("b", "ask", approvals=2), rule("z", "allow")
    assert judged(one, other) == gate_rules.Judgement(asked_by=(one, other))
    assert judged(one, other, calm) == gate_rules.Judgement(waived_by=calm)
    assert judged(calm) == gate_rules.NOTHING
    watched = rule("w", "ask", observed=True)
    assert judged(watched) == gate_rules.Judgement(would=("w",))
    # It would have been waived.
    assert judged(watched, calm) == gate_rules.NOTHING
    assert judged(one, rule("w", "allow", observed=True)) == gate_rules.Judgement(
        asked_by=(one,), would=("w",)
    )


def test_a_rule_that_asks_applies_if_that_is_unknown_and_one_that_waives_it_does_not() -> None:
    unknown = {"amount": float("nan")}
    assert outcome(rule("r", "ask", when=OVER_500), arguments=unknown) == 1
    assert outcome(rule("r", "ask"), rule("a", "allow", when=OVER_500), arguments=unknown) == 1


@given(some_rules, some_calls)
def test_a_trace_says_what_is_decided(made: catalog.GateRule, call: dict[str, Any]) -> None:
    made = dataclasses.replace(made, observed=False, effect="deny")
    fields = {name: call[name] for name in ("subagent", "at")}
    steps = gate_rules.explain(stored(made), call["agent"], call["tool"], call["arguments"], **fields)
    answers = [step.answer for step in steps]
    assert ("applies" in answers or "unknown" in answers) == is_denied(made, **call)
    without = gate_rules.explain(stored(made), call["agent"], call["tool"], **fields)
    assert [step.rule for step in without] == [step.rule for step in steps]
    assert all(step.answer != "unknown" for step in without)


def test_a_trace_names_the_arguments_that_a_rule_depends_on() -> None:
    made = rule("r", when=OVER_500, unless='{"to":true,"amount":{"const":501}}')
    (step,) = gate_rules.explain(stored(made), ADA, "read")
    assert (step.answer, step.depends_on) == ("depends", ("amount", "to"))
    (step,) = gate_rules.explain(stored(rule("r", ends=NOON)), ADA, "read", at=NOON)
    assert (step.answer, step.has_ended) == ("does not apply", True)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (rule("r"), "denies"),
        (rule("r", when=OVER_500), "denies when amount > 500"),
        (rule("r", "allow", unless=OVER_500), "allows unless amount > 500"),
        (rule("r", "ask", when=OVER_500), "asks when amount > 500"),
        (rule("r", observed=True, when=OVER_500), "would deny when amount > 500"),
    ],
)
def test_a_rule_is_written_in_words(made: catalog.GateRule, words: str) -> None:
    assert gate_rules.in_words(made) == words


def test_calls_of_tools_are_admitted_in_one_place_only() -> None:
    """Whatever else made an admission could forget the gate rules.

    Prompts and resources are not calls of tools. The admissions of calls that a client runs wrap one of these.
    """
    root = Path(toolbelt.__file__).parent
    makers = set()
    for file in sorted(root.rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Admission":
                    makers.add((str(file.relative_to(root)), function.name))
    assert makers == {
        ("core/admitting.py", "checked"),
        ("runtime/calls/prompts_and_resources.py", "admit"),
        ("runtime/calls/admissions.py", "_admit"),
    }
    assert set(outcomes.REFUSALS) >= {"denied-by-rule"}


NOON_LIMIT = call_limits.CallLimit(calls=2, per="hour")


def after(**fields: Any) -> gate_rules.Past:
    counted = fields.pop("counted", 0)
    return gate_rules.Past(count=lambda count: counted, **fields)


@pytest.mark.parametrize(
    ("fields", "has", "applies"),
    [
        ({"labels": ("a", "b")}, {"a"}, False),
        ({"labels": ("a", "b")}, {"a", "b", "c"}, True),
        ({"without": ("a", "b")}, {"a"}, True),
        ({"without": ("a", "b")}, {"a", "b"}, False),
        ({"labels": ("a",), "without": ("b",)}, {"a"}, True),
        ({"labels": ("a",), "without": ("b",)}, {"a", "b"}, False),
        ({"labels": ("a",), "without": ("b",)}, set(), False),
    ],
)
def test_a_rule_applies_with_all_of_its_labels_and_without_one_of_the_others(
    fields: dict[str, Any], has: set[str], applies: bool
) -> None:
    past = after(labels=frozenset(has))
    assert is_denied(rule("r", **fields), past=past) is applies
    # And waives what asks under the same condition.
    waived = judged(rule("q", "ask"), rule("r", "allow", **fields), past=past)
    assert (waived.waived_by is not None) is applies


def test_without_a_session_or_a_count_a_rule_denies_and_does_not_allow() -> None:
    for fields in ({"labels": ("a",)}, {"without": ("a",)}, {"more_than": NOON_LIMIT}):
        assert is_denied(rule("r", **fields))
        assert judged(rule("r", "ask", **fields)).asked_by
        assert judged(rule("q", "ask"), rule("r", "allow", **fields)).asked_by


def test_a_call_counts_for_each_limit_whose_conditions_it_fits_and_is_denied_from_the_last_on() -> None:
    limits = [
        rule("fits", more_than=NOON_LIMIT, when=OVER_500),
        rule("other", more_than=NOON_LIMIT, when='{"amount":{"maximum":1}}'),
        rule("seen", more_than=NOON_LIMIT, observed=True),
    ]
    given = {"amount": 501}
    answer = judged(*limits, arguments=given, past=after(counted=1))
    assert [(count.rule.key, count.is_limited) for count in answer.counts] == [
        ("fits", True),
        ("seen", False),
    ]
    assert (answer.denied_by, answer.would) == (None, ())
    full = judged(*limits, arguments=given, past=after(counted=2))
    assert (full.denied_by, full.would) == (limits[0], ("seen",))


def test_what_was_approved_or_waived_counts_without_a_limit() -> None:
    asks = rule("q", "ask", more_than=NOON_LIMIT)
    answer = judged(asks, past=after(counted=2))
    assert [count.is_limited for count in answer.counts] == [True]
    assert [count.is_limited for count in gate_rules.answered(answer, ["q"])] == [False]
    waived = judged(asks, rule("a", "allow"), past=after(counted=2))
    assert (waived.waived_by, [count.is_limited for count in waived.counts]) == (rule("a", "allow"), [False])


def test_a_call_that_is_judged_by_its_arguments_alone_is_not_judged_by_its_past() -> None:
    rules = [rule("l", labels=("a",)), rule("m", more_than=NOON_LIMIT)]
    assert judged(*rules, past=gate_rules.LEFT_OUT) == gate_rules.NOTHING
    assert is_denied(*rules, rule("d"), past=gate_rules.LEFT_OUT)


def test_a_call_is_not_limited_again_by_what_it_counts_for_but_by_any_other_limit() -> None:
    past = dataclasses.replace(after(counted=2), counted=("m", "q"))
    assert not is_denied(rule("m", more_than=NOON_LIMIT), past=past)
    assert is_denied(rule("m", more_than=NOON_LIMIT), rule("n", more_than=NOON_LIMIT), past=past)
    asks = rule("q", "ask", more_than=NOON_LIMIT)
    assert judged(asks, past=past).asked_by == ()
    assert judged(asks, past=dataclasses.replace(past, answered=("q",))).asked_by == (asks,)


@pytest.mark.parametrize(
    ("per", "at", "resets"),
    [
        ("hour", "2031-05-04T12:59:59", "2031-05-04T13:00:00"),
        ("hour", "2031-05-04T13:00:00", "2031-05-04T14:00:00"),
        ("10m", "2031-05-04T12:09:00", "2031-05-04T12:10:00"),
        ("day", "2031-05-04T12:00:00", "2031-05-05T00:00:00"),
    ],
)
def test_counts_begin_at_full_hours_and_days(per: str, at: str, resets: str) -> None:
    moments = [dt.datetime.fromisoformat(each).replace(tzinfo=dt.UTC) for each in (at, resets)]
    assert call_limits.CallLimit(calls=1, per=per).resets(moments[0]) == moments[1]


@pytest.mark.parametrize("per", ["", "0m", "-1h", "1", "m", "32d", "9999999d", "1 h", "HOUR"])
def test_a_time_that_is_none_is_refused(per: str) -> None:
    assert call_limits.seconds_of(per) is None
