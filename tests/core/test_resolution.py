"""The resolution: which loadouts count, what a subagent has, decisions, traces and options."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building, post
from toolbelt.core import catalog, resolution


def test_a_session_equipped_with_a_loadout_takes_it_for_what_is_in_view() -> None:
    session = building.session(loadout="house")
    assert post.why(building.agent(key="bob"), "web__get", session=session) == ("active", "loadout-plugin")
    assert post.why(building.agent(key="bob"), "clock", session=session) == ("dormant", "not-granted")
    assert post.why(building.agent(key="bob", loadout="full"), "calc", session=session) == (
        "discoverable",
        "pattern",
    )
    assert post.why(
        building.agent(key="bob", loadout="house"), "web__get", session=building.session(loadout="full")
    ) == (
        "active",
        "loadout-category",
    )


def test_a_session_equipped_with_a_loadout_keeps_the_denials_of_both() -> None:
    bob = building.agent(key="bob", loadout="strict")
    assert post.why(bob, "calc", session=building.session(loadout="house")) == ("denied", "loadout-disabled")
    bob = building.agent(key="bob", loadout="house")
    assert post.why(bob, "calc", session=building.session(loadout="strict")) == ("denied", "loadout-disabled")


def test_a_session_equipped_with_a_loadout_keeps_what_is_granted_and_loaded() -> None:
    bob = building.agent(key="bob", tools="calc", allowed="post")
    session = building.session("post", loadout="full")
    assert post.why(bob, "calc", session=session) == ("active", "always-on")
    assert post.why(bob, session=session) == ("active", "loaded")


def test_a_subagent_has_its_kinds_loadout_and_nothing_that_was_granted_or_loaded() -> None:
    ada = building.agent(**post.GRANTED, loadout="house")
    assert building.active(post.stored(), ada, subagent="plan", session=building.session("post more")) == [
        "git__log"
    ]
    assert post.why(ada, "web__get", subagent="plan") == ("discoverable", "pattern")
    assert post.why(ada, "web__get", subagent="explore") == ("active", "loadout-category")
    assert post.why(ada, subagent="general", session=building.session("more")) == ("dormant", "not-granted")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"switches": {"post": False}}, "switch-off"),
        ({"overrides": {"git__log": False}}, "override-off"),
        ({"loadout": "nogit"}, "loadout-disabled"),
    ],
)
def test_a_subagent_never_has_what_its_agent_is_denied(fields: Any, code: str) -> None:
    made = building.catalog_of(
        "git__log", toolkits={"post": "git__log"}, loadouts=[catalog.Loadout(name="nogit", disabled=("git",))]
    )
    assert building.decided(made, building.agent(**fields), "git__log", subagent="general") == (
        "denied",
        code,
    )


def test_a_subagent_is_denied_what_its_own_loadout_and_the_sessions_disable() -> None:
    profiles = [
        catalog.Loadout(name="full", categories=("git",), disabled=("git__log",)),
        catalog.Loadout(name="x", disabled=("git__tag",)),
    ]
    made = building.catalog_of("git__log git__tag git__add", loadouts=profiles)
    session = building.session(loadout="x")
    assert building.active(made, building.agent(loadout="minimal"), subagent="general", session=session) == [
        "git__add"
    ]


def test_a_subagent_of_a_kind_without_a_loadout_has_nothing_and_no_defaults() -> None:
    assert building.active(post.stored(), building.agent(key="bob"), subagent="plan", kind_loadouts={}) == []


def test_every_decision_says_which_question_answered_and_by_which_rule() -> None:
    ada = building.agent(switches={"more": False, "post": False}, overrides={"clock": True})
    context = resolution.build_context(building.snapshot(post.stored(), ada))
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


def test_a_trace_asks_every_question_in_order_also_behind_the_one_that_decides() -> None:
    ada = building.agent(switches={"post": False}, tools="mail__send")
    steps = resolution.trace(resolution.build_context(building.snapshot(post.stored(), ada)), "mail__send")
    assert [step.question for step in steps] == list(range(1, 12))
    assert [step.answer.code for step in steps if step.answer] == ["switch-off", "always-on", "not-granted"]
    assert all(step.rule for step in steps)


@pytest.mark.parametrize(
    "fields", [{}, post.GRANTED, {"switches": {"post": False}, "overrides": {"calc": False}}]
)
@pytest.mark.parametrize("loadout", ["", "house", "strict"])
@pytest.mark.parametrize("subagent", [None, "plan"])
def test_questions_that_cannot_apply_are_left_out_without_changing_an_answer(
    fields: Any, loadout: str, subagent: str | None
) -> None:
    snapshot = building.snapshot(
        post.stored(),
        building.agent(**fields, loadout=loadout),
        session=building.session("post"),
        subagent=subagent,
    )
    context = resolution.build_context(snapshot)
    for key in snapshot.catalog.tools:
        first = next(step for step in resolution.trace(context, key) if step.answer)
        decision = resolution.decide(context, key)
        assert (decision.question, decision.state, decision.code, decision.origin) == (
            first.question,
            *(first.answer or ()),
        )


def test_the_first_source_hands_a_tool_its_options() -> None:
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


def test_a_subagents_tools_have_no_options() -> None:
    made = building.catalog_of("git__log")
    context = resolution.build_context(
        building.snapshot(made, building.agent(tools={"git__log": {"n": 1}}), subagent="plan")
    )
    assert resolution.options(context, "git__log") == (None, None)


def test_what_was_loaded_by_name_brings_no_options_into_conflict_once_its_pattern_is_gone() -> None:
    made = building.catalog_of("run", toolkits=[building.toolkit("kit", {"run": {"n": 1}})])
    session = building.session(tools="run")
    for loadout, is_conflict in (("minimal", True), ("full", False)):
        ada = building.agent(switches={"kit": True}, loadout=loadout)
        _, conflict = resolution.options(
            resolution.build_context(building.snapshot(made, ada, session=session)), "run"
        )
        assert (conflict is not None) is is_conflict


def test_names_that_nothing_has_are_passed_over() -> None:
    ada = building.agent(
        tools="ghost",
        switches={"ghost": True, "spook": False},
        overrides={"ghost": True, "wraith": False},
        allowed="ghost",
        initial="ghost",
        loadout="ghost",
    )
    session = building.session("ghost", tools="ghost", plugins="ghost", loadout="ghost")
    assert building.active(post.stored(), ada, session=session) == ["mail__send"]


def test_a_switch_that_is_turned_on_leaves_what_a_rule_before_it_denies() -> None:
    made = building.catalog_of("a b c", toolkits={"kit": "a b"})
    ada = building.agent(overrides={"a": False}, switches={"kit": False})
    context = resolution.build_context(building.snapshot(made, ada))
    # The switch decides about a now; once it is on, the override does.
    assert not resolution.decide(context, "a").holds_whatever_the_switch
    ada = building.agent(overrides={"a": False}, switches={"kit": True})
    context = resolution.build_context(building.snapshot(made, ada))
    holds = {key: resolution.decide(context, key).holds_whatever_the_switch for key in "abc"}
    assert holds == {"a": True, "b": False, "c": False}
