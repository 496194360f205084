"""Tests of the resolution: effective loadouts, subagents, decisions, traces and options."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building, mail_catalog
from toolbelt.core import catalog
from toolbelt.core.rules import resolution


def test_a_sessions_loadout_replaces_the_agents_for_grants_and_patterns() -> None:
    session = building.session(loadout="house")
    assert mail_catalog.decide(building.agent(key="bob"), "web__get", session=session) == (
        "active",
        "loadout-plugin",
    )
    assert mail_catalog.decide(building.agent(key="bob"), "clock", session=session) == (
        "dormant",
        "not-granted",
    )
    assert mail_catalog.decide(building.agent(key="bob", loadout="full"), "calc", session=session) == (
        "discoverable",
        "pattern",
    )
    assert mail_catalog.decide(
        building.agent(key="bob", loadout="house"), "web__get", session=building.session(loadout="full")
    ) == (
        "active",
        "loadout-category",
    )


def test_a_sessions_loadout_adds_its_denials_to_the_agents() -> None:
    bob = building.agent(key="bob", loadout="strict")
    assert mail_catalog.decide(bob, "calc", session=building.session(loadout="house")) == (
        "denied",
        "loadout-disabled",
    )
    bob = building.agent(key="bob", loadout="house")
    assert mail_catalog.decide(bob, "calc", session=building.session(loadout="strict")) == (
        "denied",
        "loadout-disabled",
    )


def test_a_sessions_loadout_keeps_granted_and_loaded_tools() -> None:
    bob = building.agent(key="bob", tools="calc", allowed="post")
    session = building.session("post", loadout="full")
    assert mail_catalog.decide(bob, "calc", session=session) == ("active", "always-on")
    assert mail_catalog.decide(bob, session=session) == ("active", "loaded")


def test_a_subagent_has_the_loadout_of_its_kind_without_grants_or_loads() -> None:
    ada = building.agent(**mail_catalog.GRANTED, loadout="house")
    assert building.active(
        mail_catalog.stored(), ada, subagent="plan", session=building.session("post more")
    ) == ["git__log"]
    assert mail_catalog.decide(ada, "web__get", subagent="plan") == ("discoverable", "pattern")
    assert mail_catalog.decide(ada, "web__get", subagent="explore") == ("active", "loadout-category")
    assert mail_catalog.decide(ada, subagent="general", session=building.session("more")) == (
        "dormant",
        "not-granted",
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"switches": {"post": False}}, "switch-off"),
        ({"overrides": {"git__log": False}}, "override-off"),
        ({"loadout": "nogit"}, "loadout-disabled"),
    ],
)
def test_a_subagent_is_denied_the_tools_that_its_agent_is_denied(fields: Any, code: str) -> None:
    made = building.catalog_of(
        "git__log", toolkits={"post": "git__log"}, loadouts=[catalog.Loadout(name="nogit", disabled=("git",))]
    )
    assert building.decided(made, building.agent(**fields), "git__log", subagent="general") == (
        "denied",
        code,
    )


def test_a_subagent_is_denied_tools_that_its_or_the_sessions_loadout_disables() -> None:
    profiles = [
        catalog.Loadout(name="full", categories=("git",), disabled=("git__log",)),
        catalog.Loadout(name="x", disabled=("git__tag",)),
    ]
    made = building.catalog_of("git__log git__tag git__add", loadouts=profiles)
    session = building.session(loadout="x")
    assert building.active(made, building.agent(loadout="minimal"), subagent="general", session=session) == [
        "git__add"
    ]


def test_a_subagent_of_a_kind_without_a_loadout_has_no_tools() -> None:
    assert (
        building.active(mail_catalog.stored(), building.agent(key="bob"), subagent="plan", kind_loadouts={})
        == []
    )


def test_a_decision_names_the_deciding_rule_and_its_origin() -> None:
    ada = building.agent(switches={"more": False, "post": False}, overrides={"clock": True})
    context = resolution.build_context(building.snapshot(mail_catalog.stored(), ada))
    assert resolution.decide(context, "mail__send") == (
        "mail__send",
        "denied",
        "switch-off",
        3,
        ("switch", "post", ""),
    )
    assert resolution.decide(context, "clock") == (
        "clock",
        "active",
        "override-on",
        6,
        ("override", "clock", ""),
    )
    assert resolution.decide(context, "web__get") == (
        "web__get",
        "dormant",
        "not-granted",
        11,
        ("agent", "ada", ""),
    )


def test_a_trace_evaluates_every_rule_in_order_even_after_the_deciding_one() -> None:
    ada = building.agent(switches={"post": False}, tools="mail__send")
    steps = resolution.trace(
        resolution.build_context(building.snapshot(mail_catalog.stored(), ada)), "mail__send"
    )
    assert [step.rule_number for step in steps] == list(range(1, 12))
    assert [step.answer.code for step in steps if step.answer] == ["switch-off", "always-on", "not-granted"]
    assert all(step.rule for step in steps)


@pytest.mark.parametrize(
    "fields", [{}, mail_catalog.GRANTED, {"switches": {"post": False}, "overrides": {"calc": False}}]
)
@pytest.mark.parametrize("loadout", ["", "house", "strict"])
@pytest.mark.parametrize("subagent", [None, "plan"])
def test_skipping_rules_that_cannot_apply_does_not_change_decisions(
    fields: Any, loadout: str, subagent: str | None
) -> None:
    snapshot = building.snapshot(
        mail_catalog.stored(),
        building.agent(**fields, loadout=loadout),
        session=building.session("post"),
        subagent=subagent,
    )
    context = resolution.build_context(snapshot)
    for key in snapshot.catalog.tools:
        first = next(step for step in resolution.trace(context, key) if step.answer)
        decision = resolution.decide(context, key)
        assert (decision.rule_number, decision.state, decision.code, decision.origin) == (
            first.rule_number,
            *(first.answer or ()),
        )


def test_a_tool_gets_the_options_of_its_first_source() -> None:
    made = building.catalog_of(
        "run",
        toolkits=[building.toolkit("one", {"run": {"n": 1}}), building.toolkit("two", {"run": {"n": 2}})],
    )
    context = resolution.build_context(
        building.snapshot(made, building.agent(switches={"two": True}, allowed="one", initial="one"))
    )
    options, conflict = resolution.options(context, "run")
    assert options == {"n": 2}
    assert conflict is not None
    assert (conflict.first.name, conflict.second.name) == ("two", "one")


def test_tools_of_a_subagent_have_no_options() -> None:
    made = building.catalog_of("git__log")
    context = resolution.build_context(
        building.snapshot(made, building.agent(tools={"git__log": {"n": 1}}), subagent="plan")
    )
    assert resolution.options(context, "git__log") == (None, None)


def test_a_tool_loaded_by_name_does_not_conflict_once_no_pattern_matches_it() -> None:
    made = building.catalog_of("run", toolkits=[building.toolkit("kit", {"run": {"n": 1}})])
    session = building.session(tools="run")
    for loadout, is_conflict in (("minimal", True), ("full", False)):
        ada = building.agent(switches={"kit": True}, loadout=loadout)
        _, conflict = resolution.options(
            resolution.build_context(building.snapshot(made, ada, session=session)), "run"
        )
        assert (conflict is not None) is is_conflict


def test_unknown_names_in_the_configuration_are_ignored() -> None:
    ada = building.agent(
        tools="ghost",
        switches={"ghost": True, "spook": False},
        overrides={"ghost": True, "wraith": False},
        allowed="ghost",
        initial="ghost",
        loadout="ghost",
    )
    session = building.session("ghost", tools="ghost", plugins="ghost", loadout="ghost")
    assert building.active(mail_catalog.stored(), ada, session=session) == ["mail__send"]


def test_turning_a_switch_on_does_not_override_denials_of_other_rules() -> None:
    made = building.catalog_of("a b c", toolkits={"kit": "a b"})
    ada = building.agent(overrides={"a": False}, switches={"kit": False})
    context = resolution.build_context(building.snapshot(made, ada))
    # The off switch decides for a. Once it is on, the override decides.
    assert not resolution.decide(context, "a").holds_whatever_the_switch
    ada = building.agent(overrides={"a": False}, switches={"kit": True})
    context = resolution.build_context(building.snapshot(made, ada))
    holds = {key: resolution.decide(context, key).holds_whatever_the_switch for key in "abc"}
    assert holds == {"a": True, "b": False, "c": False}


def test_a_blocked_tool_reads_as_blocked_whatever_else_makes_it_unavailable() -> None:
    stored = building.catalog_of(
        [catalog.Tool(key="post", plugin="mail"), catalog.Tool(key="clock", seen=False)],
        plugins=[catalog.Plugin(name="mail", status="failed", blocked=True)],
    )
    context = resolution.build_context(building.snapshot(stored))
    decided = resolution.decide(context, "post")
    assert decided.code == "plugin-failed"
    shown = resolution.as_shown(stored, decided)
    assert (shown.state, shown.code, shown.origin[:2]) == ("denied", "blocked", ("plugin", "mail"))
    unseen = resolution.decide(context, "clock")
    assert resolution.as_shown(stored, unseen) == unseen
