"""The questions, one by one: what each closes, opens or offers, and what it is asked before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building, post
from toolbelt.core import catalog, resolution, rules


def test_the_eleven_questions_are_numbered_in_order() -> None:
    assert [question.number for question in rules.RULES] == list(range(1, 12))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"retired": True}, "tool-retired"),
        ({"seen": False}, "tool-unseen"),
        ({"approved": "sha256:0"}, "tool-changed"),
        ({"retired": True, "blocked": True}, "tool-retired"),
    ],
)
def test_a_tool_that_cannot_be_had_is_unavailable_whatever_grants_or_denies_it(
    fields: Any, code: str
) -> None:
    for ada in (building.agent(**post.GRANTED), building.agent(switches={"post": False})):
        assert building.decided(post.stored(**fields), ada, "mail__send") == ("unavailable", code)


def test_a_tool_that_nobody_has_seen_is_held_unless_its_plugin_is_trusted() -> None:
    for trusted, answer in ((False, ("unavailable", "tool-unseen")), (True, ("active", "always-on"))):
        plugin = catalog.Plugin(name="mail", trusted=trusted)
        made = building.catalog_of([building.tool("mail__send", seen=False)], plugins=[plugin])
        assert building.decided(made, building.agent(tools="mail__send"), "mail__send") == answer


@pytest.mark.parametrize(
    ("plugin", "code"),
    [
        (catalog.Plugin(name="mail", status="failed", active=False), "plugin-failed"),
        (catalog.Plugin(name="mail", active=False, blocked=True), "plugin-disabled"),
        (catalog.Plugin(name="mail", in_code=True, not_running=("mail__send",), blocked=True), "not-running"),
    ],
)
def test_a_tool_of_a_plugin_that_failed_is_disabled_or_not_running_is_unavailable(
    plugin: catalog.Plugin, code: str
) -> None:
    made = building.catalog_of("mail__send", plugins=[plugin])
    assert building.decided(made, building.agent(tools="mail__send"), "mail__send") == ("unavailable", code)


@pytest.mark.parametrize(
    "made",
    [
        building.catalog_of([building.tool("mail__send", blocked=True)]),
        building.catalog_of("mail__send", plugins=[catalog.Plugin(name="mail", blocked=True)]),
        building.catalog_of(
            "mail__send",
            toolkits=[building.toolkit("a", "mail__send"), building.toolkit("b", "mail__send", blocked=True)],
        ),
    ],
    ids=["tool", "plugin", "toolkit"],
)
def test_what_is_blocked_for_everyone_is_denied_to_everyone(made: catalog.Catalog) -> None:
    ada = building.agent(tools="mail__send", overrides={"mail__send": True}, switches={"a": True})
    assert building.decided(made, ada, "mail__send") == ("denied", "blocked")


def test_a_switch_that_is_off_beats_every_other_source() -> None:
    ada = building.agent(**{**post.GRANTED, "switches": {"post": True, "more": False}})
    assert post.why(ada) == ("denied", "switch-off")
    assert post.why(ada, session=building.session("post more", tools="mail__send")) == (
        "denied",
        "switch-off",
    )


def test_an_override_that_is_off_beats_a_switch_that_is_on() -> None:
    assert post.why(building.agent(**{**post.GRANTED, "overrides": {"mail__send": False}})) == (
        "denied",
        "override-off",
    )


def test_a_switch_that_is_off_is_named_before_an_override_that_is_off() -> None:
    ada = building.agent(switches={"post": False}, overrides={"mail__send": False})
    assert post.why(ada) == ("denied", "switch-off")


@pytest.mark.parametrize("disabled", ["mail", "MAIL", "mail__send"])
def test_a_disabled_entry_at_any_level_beats_every_grant(disabled: str) -> None:
    profiles = [
        catalog.Loadout(name="root", disabled=(disabled,)),
        catalog.Loadout(name="leaf", parent="root", plugins=("mail",)),
    ]
    made = building.catalog_of("mail__send", toolkits={"post": "mail__send"}, loadouts=profiles)
    ada = building.agent(
        loadout="leaf",
        tools="mail__send",
        overrides={"mail__send": True},
        switches={"post": True},
        allowed="post",
        initial="post",
    )
    decision = resolution.decide(resolution.build_context(building.snapshot(made, ada)), "mail__send")
    assert (decision.state, decision.code, decision.question) == ("denied", "loadout-disabled", 5)
    assert decision.origin == ("loadout", "root", "level 2 of leaf")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (post.GRANTED, "override-on"),
        ({**post.GRANTED, "overrides": {}}, "always-on"),
        ({**post.GRANTED, "overrides": {}, "tools": ""}, "sub-app"),
    ],
)
def test_a_tool_granted_alone_is_active_by_its_first_reason(fields: Any, code: str) -> None:
    assert post.why(building.agent(**fields)) == ("active", code)


@pytest.mark.parametrize(
    ("fields", "session", "code"),
    [
        ({"switches": {"more": True}, "allowed": "post", "initial": "post"}, "", "switch-on"),
        ({"allowed": "post more", "initial": "more"}, "post", "initial"),
        ({"allowed": "post more"}, "post", "loaded"),
        ({"loadout": "house", "allowed": "post"}, "post", "loaded"),
    ],
)
def test_a_switch_that_is_on_comes_before_what_is_loaded(fields: Any, session: str, code: str) -> None:
    bob = building.agent(key="bob", **fields)
    assert post.why(bob, session=building.session(session)) == ("active", code)


def test_a_switch_that_is_on_reaches_past_the_loadout_and_the_allowed_list() -> None:
    bob = building.agent(key="bob", loadout="minimal", switches={"post": True})
    assert building.active(post.stored(), bob) == ["git__log", "mail__send"]


@pytest.mark.parametrize(
    ("loaded", "kind"),
    [({"tools": "mail__send"}, "tool"), ({"plugins": "mail"}, "plugin")],
    ids=["tool", "plugin"],
)
def test_a_tool_loaded_by_name_is_active_while_a_pattern_still_matches_it(loaded: Any, kind: str) -> None:
    session = building.session(**loaded)
    bob = building.agent(key="bob", loadout="house")
    assert post.why(bob, session=session) == ("active", "loaded")
    assert building.active(post.stored(), bob, session=session) == ["git__log", "mail__send", "web__get"]
    decision = resolution.decide(
        resolution.build_context(building.snapshot(post.stored(), bob, session=session)), "mail__send"
    )
    assert decision.origin == (kind, "mail" if kind == "plugin" else "mail__send", "mail")
    assert post.why(building.agent(key="bob", loadout="research"), session=building.session(**loaded)) == (
        "active",
        "loaded",
    )
    assert post.why(building.agent(key="bob", loadout="full"), session=session) == ("dormant", "not-granted")
    assert post.why(building.agent(key="bob"), session=session) == ("dormant", "not-granted")


def test_a_loaded_toolkit_that_is_no_longer_allowed_does_not_count() -> None:
    session = building.session("post")
    assert post.why(building.agent(key="bob", allowed="more"), session=session) == (
        "discoverable",
        "loadable",
    )
    assert post.why(building.agent(key="bob"), session=session) == ("dormant", "not-granted")


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("web__get", ("active", "loadout-plugin")),
        ("git__log", ("active", "loadout-category")),
        ("calc", ("discoverable", "pattern")),
        ("mail__send", ("discoverable", "pattern")),
        ("clock", ("dormant", "not-granted")),
    ],
)
def test_a_loadout_brings_into_view_by_plugin_then_category_then_pattern(
    key: str, answer: tuple[str, str]
) -> None:
    assert post.why(building.agent(key="bob", loadout="HOUSE"), key) == answer


def test_without_a_loadout_what_is_on_by_default_is_active() -> None:
    assert building.active(post.stored(), building.agent(key="bob")) == ["clock"]
    assert post.why(building.agent(key="bob"), "clock") == ("active", "default-on")


def test_an_agent_without_a_loadout_takes_its_kinds() -> None:
    assert post.why(building.agent(key="bob", kind="plan"), "git__log") == ("active", "loadout-category")
    assert post.why(building.agent(key="bob", kind="plan"), "clock") == ("discoverable", "pattern")


def test_an_unknown_loadout_brings_nothing_in_and_no_defaults() -> None:
    assert building.active(post.stored(), building.agent(key="bob", loadout="ghost")) == []


def test_an_allowed_toolkit_is_named_before_a_pattern() -> None:
    bob = building.agent(key="bob", loadout="house", allowed="more post")
    decision = resolution.decide(
        resolution.build_context(building.snapshot(post.stored(), bob)), "mail__send"
    )
    assert (decision.code, decision.origin.name) == ("loadable", "post")


def test_without_a_session_initial_toolkits_count() -> None:
    bob = building.agent(key="bob", allowed="post more", initial="post")
    assert post.why(bob, session=None) == ("active", "initial")
    assert post.why(bob, "calc", session=None) == ("discoverable", "loadable")


def test_an_initial_toolkit_that_is_not_allowed_brings_nothing() -> None:
    assert post.why(building.agent(key="bob", initial="post")) == ("dormant", "not-granted")
