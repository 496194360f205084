"""Tests that recorded calls are decided again from their facts, and that nothing unknown is guessed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from typing import Any

import pytest

from toolbelt.core import agents, call_limits, catalog, replay, sessions, tool_versions

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
ADA = agents.Agent(key="ada", switches={"desk": True}, allowed_toolkits=("more",))
OVER_500 = json.dumps({"amount": {"exclusiveMinimum": 500}})
REFUND = catalog.Tool(key="refund", input_schema='{"type":"object"}')


def stored(*rules: catalog.GateRule, tools: tuple[catalog.Tool, ...] = (REFUND,)) -> catalog.Catalog:
    return catalog.compile_(
        tools=[*tools, catalog.Tool(key="note"), catalog.Tool(key="odd")],
        toolkits=[
            catalog.Toolkit(key="desk", members=(catalog.Member(tool="refund"),)),
            catalog.Toolkit(key="more", members=(catalog.Member(tool="note"),)),
        ],
        gate_rules=rules,
    )


def judge(
    *rules: catalog.GateRule, agent: agents.Agent | None = ADA, tools: tuple[catalog.Tool, ...] = (REFUND,)
) -> replay.Judge:
    among = {} if agent is None else {agent.key: agent}
    return replay.Judge(stored(*rules, tools=tools), among, agents.KIND_LOADOUTS, NOON)


def facts(tool: str = "refund", **fields: Any) -> replay.Facts:
    definition = fields.pop("definition", tool_versions.short(tool_versions.version(REFUND)))
    defaults: dict[str, Any] = {
        "has_session": False,
        "state": "",
        "subagent": "",
        "dispatched": False,
        "outcome": "ok",
    }
    return replay.Facts(agent="ada", tool=tool, definition=definition, **{**defaults, **fields})


def rule(effect: catalog.Effect = "deny", **fields: Any) -> catalog.GateRule:
    return catalog.GateRule(key="r", effect=effect, **fields)


def kinds(answer: replay.Difference | replay.Unproven | None) -> tuple[str, str]:
    assert isinstance(answer, replay.Difference), answer
    return answer.before.kind, answer.after.kind


def test_a_call_goes_as_before_if_nothing_is_changed() -> None:
    assert replay.compare(judge(), judge(), facts()) is None


@pytest.mark.parametrize(
    ("changed", "kind", "code"),
    [
        ({"switches": {"desk": False}}, "refused", "switch-off"),
        ({"switches": {}, "allowed_toolkits": ("desk",)}, "load", "loadable"),
        ({"budget": agents.Budget(max_tools=0, on_exceed="defer"), "switches": {}}, "refused", "not-granted"),
        ({"archived": True}, "refused", "archived"),
    ],
)
def test_a_call_that_runs_goes_otherwise_for_the_reason_of_the_changed_rules(
    changed: dict[str, Any], kind: str, code: str
) -> None:
    answer = replay.compare(judge(), judge(agent=dataclasses.replace(ADA, **changed)), facts())

    assert kinds(answer) == ("runs", kind)
    assert isinstance(answer, replay.Difference)
    assert answer.after.code == code


def test_a_call_that_was_refused_is_admitted() -> None:
    off = dataclasses.replace(ADA, switches={"desk": False})

    answer = replay.compare(judge(agent=off), judge(), facts(outcome="tool-denied"))

    assert kinds(answer) == ("refused", "runs")


def test_what_the_session_had_loaded_counts() -> None:
    state = sessions.state(sessions.with_change(sessions.NEW, "toolkit", "more", True, None), None)
    disallowed = dataclasses.replace(ADA, allowed_toolkits=())
    version = tool_versions.short(tool_versions.version(catalog.Tool(key="note")))
    loaded = facts("note", definition=version, has_session=True, state=state)

    assert kinds(replay.compare(judge(), judge(agent=disallowed), loaded)) == ("runs", "refused")
    # Without the load, it would not have run today either.
    assert replay.compare(judge(), judge(agent=disallowed), loaded._replace(state="")) is None


def test_what_came_through_call_tool_needs_no_load() -> None:
    on_request = dataclasses.replace(ADA, switches={}, allowed_toolkits=("desk",))

    assert replay.compare(judge(), judge(agent=on_request), facts(dispatched=True)) is None


def test_what_a_budget_defers_must_be_loaded_first() -> None:
    tight = dataclasses.replace(
        ADA, switches={}, allowed_toolkits=("desk",), initial_toolkits=("desk",), budget=None
    )
    deferring = dataclasses.replace(tight, budget=agents.Budget(max_tools=0, on_exceed="defer"))

    answer = replay.compare(judge(agent=tight), judge(agent=deferring), facts())

    assert kinds(answer) == ("runs", "load")
    assert isinstance(answer, replay.Difference)
    assert answer.after.code == "budget"


@pytest.mark.parametrize("missing", ["state", "subagent", "dispatched"])
def test_a_record_without_its_facts_is_not_replayed(missing: str) -> None:
    off = dataclasses.replace(ADA, switches={"desk": False})
    unknown: dict[str, Any] = {missing: None}

    assert replay.compare(judge(), judge(agent=off), facts(**unknown)) == replay.Unproven("no-facts")


def test_a_call_of_an_agent_that_no_longer_exists_is_not_replayed() -> None:
    assert replay.compare(judge(agent=None), judge(agent=None), facts()) == replay.Unproven("agent-gone")


def test_a_call_of_an_agent_that_the_change_removes_is_refused() -> None:
    assert kinds(replay.compare(judge(), judge(agent=None), facts())) == ("runs", "refused")


def test_invalid_arguments_are_refused_whatever_the_change_admits() -> None:
    off = dataclasses.replace(ADA, switches={"desk": False})

    assert replay.compare(judge(agent=off), judge(), facts(outcome="invalid-arguments")) is None


def test_arguments_that_fitted_another_definition_are_not_known_to_fit_the_new_one() -> None:
    off = dataclasses.replace(ADA, switches={"desk": False})
    older = facts(definition="0" * 24)

    answer = replay.compare(judge(agent=off), judge(), older)
    assert answer == replay.Unproven("arguments-not-recorded")
    # Whatever they are, the change refuses them; that they ran is recorded.
    assert kinds(replay.compare(judge(), judge(agent=off), older)) == ("runs", "refused")
    # Whatever they are, the change does nothing to them.
    assert replay.compare(judge(), judge(agent=dataclasses.replace(ADA, title="Ada")), older) is None


def test_a_changed_schema_makes_the_calls_unproven() -> None:
    other = dataclasses.replace(REFUND, input_schema='{"type":"object","required":["amount"]}')

    answer = replay.compare(judge(), judge(tools=(other,)), facts())

    assert answer == replay.Unproven("arguments-not-recorded")


def test_a_rule_without_conditions_decides_without_arguments() -> None:
    assert kinds(replay.compare(judge(), judge(rule()), facts())) == ("runs", "refused")
    assert kinds(replay.compare(judge(), judge(rule("ask")), facts())) == ("runs", "ask")
    assert replay.compare(judge(), judge(rule(observed=True)), facts()) is None
    assert replay.compare(judge(), judge(rule(ends=NOON)), facts()) is None
    assert replay.compare(judge(), judge(rule(agents=("bob",))), facts()) is None


@pytest.mark.parametrize(
    ("recorded", "kind"),
    [
        ({"chosen": '{"amount":501}'}, "refused"),
        ({"chosen": '{"amount":500}'}, None),
        ({"arguments": '{"amount":501}'}, "refused"),
        # The rule is about an amount, and the call had none.
        ({"arguments": '{"to":"x"}'}, None),
    ],
)
def test_a_rule_on_arguments_decides_by_those_that_are_recorded(
    recorded: dict[str, str], kind: str | None
) -> None:
    answer = replay.compare(judge(), judge(rule(when=OVER_500)), facts(**recorded))

    assert answer is None if kind is None else kinds(answer) == ("runs", kind)


@pytest.mark.parametrize(
    "recorded",
    [
        {},
        {"chosen": '{"to.domain":"x"}'},
        {"chosen": '{"amount":"[withheld]"}'},
        {"arguments": '{"amount":"[withheld]"}'},
    ],
)
def test_a_rule_on_arguments_that_are_not_recorded_is_not_guessed(recorded: dict[str, str]) -> None:
    answer = replay.compare(judge(), judge(rule(when=OVER_500)), facts(**recorded))

    assert answer == replay.Unproven("arguments-not-recorded", ("amount",))


def test_a_rule_on_all_arguments_needs_all_of_them() -> None:
    few = rule(when=json.dumps({"type": "object", "maxProperties": 1, "required": ["amount"]}))

    chosen = replay.compare(judge(), judge(few), facts(chosen='{"amount":1}'))
    complete = replay.compare(judge(), judge(few), facts(arguments='{"amount":1}'))

    assert isinstance(chosen, replay.Unproven)
    assert kinds(complete) == ("runs", "refused")


def test_a_rule_that_stays_as_it_is_needs_no_arguments() -> None:
    same = rule(when=OVER_500)

    assert replay.compare(judge(same), judge(same), facts()) is None


def test_a_load_that_the_change_would_refuse_is_found() -> None:
    disallowed = dataclasses.replace(ADA, allowed_toolkits=("desk",))
    load = facts("load_tools", definition=None, has_session=True, detail="more loaded")

    assert kinds(replay.compare(judge(), judge(agent=disallowed), load)) == ("runs", "refused")
    assert replay.compare(judge(), judge(), load) is None


def test_what_the_calls_before_decide_is_not_guessed() -> None:
    limit = call_limits.CallLimit(calls=20, per="hour")
    for fields in ({"more_than": limit}, {"labels": ("private",)}, {"without": ("private",)}):
        brings = dataclasses.replace(REFUND, brings=("private",))
        past = rule(**fields)
        in_session = facts(has_session=True, definition=tool_versions.short(tool_versions.version(brings)))
        today, changed = judge(tools=(brings,)), judge(past, tools=(brings,))
        answer = replay.compare(today, changed, in_session)
        assert isinstance(answer, replay.Unproven)
        assert answer.reason == "past-not-recorded"
        assert replay.compare(changed, changed, in_session) is None


def test_a_label_that_a_session_had_or_that_nothing_brings_is_known() -> None:
    has = facts(has_session=True, state='{"by_agent":false,"labels":["private"],"loaded":[],"loadout":""}')
    assert kinds(replay.compare(judge(), judge(rule(labels=("private",))), has)) == ("runs", "refused")
    assert replay.compare(judge(), judge(rule(labels=("other",))), has) is None
    assert kinds(replay.compare(judge(), judge(rule(labels=("other",))), facts())) == ("runs", "refused")
