"""Tests of the eleven rules: what each denies, grants or offers, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building, mail_catalog
from toolbelt.core import catalog, rules
from toolbelt.core.rules import resolution


def test_the_eleven_rules_are_numbered_in_order() -> None:
    assert [rule.number for rule in rules.RULES] == list(range(1, 12))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"retired": True}, "tool-retired"),
        ({"seen": False}, "tool-unseen"),
        ({"approved": "sha256:0"}, "tool-changed"),
        ({"retired": True, "blocked": True}, "tool-retired"),
    ],
)
def test_unavailability_precedes_every_grant_and_denial(fields: Any, code: str) -> None:
    for ada in (building.agent(**mail_catalog.GRANTED), building.agent(switches={"post": False})):
        assert building.decided(mail_catalog.stored(**fields), ada, "mail__send") == ("unavailable", code)


def test_an_unreviewed_tool_is_unavailable_unless_its_plugin_is_trusted() -> None:
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
def test_tools_of_a_failed_disabled_or_stopped_plugin_are_unavailable(
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
def test_a_blocked_tool_plugin_or_toolkit_is_denied_to_every_agent(made: catalog.Catalog) -> None:
    ada = building.agent(tools="mail__send", overrides={"mail__send": True}, switches={"a": True})
    assert building.decided(made, ada, "mail__send") == ("denied", "blocked")


def test_an_off_switch_overrides_every_grant() -> None:
    ada = building.agent(**{**mail_catalog.GRANTED, "switches": {"post": True, "more": False}})
    assert mail_catalog.decide(ada) == ("denied", "switch-off")
    assert mail_catalog.decide(ada, session=building.session("post more", tools="mail__send")) == (
        "denied",
        "switch-off",
    )


def test_an_off_override_overrides_a_switch_that_is_on() -> None:
    assert mail_catalog.decide(
        building.agent(**{**mail_catalog.GRANTED, "overrides": {"mail__send": False}})
    ) == (
        "denied",
        "override-off",
    )


def test_an_off_switch_is_the_reason_before_an_off_override() -> None:
    ada = building.agent(switches={"post": False}, overrides={"mail__send": False})
    assert mail_catalog.decide(ada) == ("denied", "switch-off")


@pytest.mark.parametrize("disabled", ["mail", "MAIL", "mail__send"])
def test_a_disabled_entry_at_any_loadout_level_overrides_every_grant(disabled: str) -> None:
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
    assert (decision.state, decision.code, decision.rule_number) == ("denied", "loadout-disabled", 5)
    assert decision.origin == ("loadout", "root", "level 2 of leaf")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (mail_catalog.GRANTED, "override-on"),
        ({**mail_catalog.GRANTED, "overrides": {}}, "always-on"),
        ({**mail_catalog.GRANTED, "overrides": {}, "tools": ""}, "sub-app"),
    ],
)
def test_an_individually_granted_tool_is_active_by_its_first_reason(fields: Any, code: str) -> None:
    assert mail_catalog.decide(building.agent(**fields)) == ("active", code)


@pytest.mark.parametrize(
    ("fields", "session", "code"),
    [
        ({"switches": {"more": True}, "allowed": "post", "initial": "post"}, "", "switch-on"),
        ({"allowed": "post more", "initial": "more"}, "post", "initial"),
        ({"allowed": "post more"}, "post", "loaded"),
        ({"loadout": "house", "allowed": "post"}, "post", "loaded"),
    ],
)
def test_an_on_switch_precedes_initial_and_loaded_toolkits(fields: Any, session: str, code: str) -> None:
    bob = building.agent(key="bob", **fields)
    assert mail_catalog.decide(bob, session=building.session(session)) == ("active", code)


def test_an_on_switch_grants_tools_beyond_the_loadout_and_allowed_toolkits() -> None:
    bob = building.agent(key="bob", loadout="minimal", switches={"post": True})
    assert building.active(mail_catalog.stored(), bob) == ["git__log", "mail__send"]


@pytest.mark.parametrize(
    ("loaded", "kind"),
    [({"tools": "mail__send"}, "tool"), ({"plugins": "mail"}, "plugin")],
    ids=["tool", "plugin"],
)
def test_a_tool_loaded_by_name_is_active_only_while_a_pattern_matches_it(loaded: Any, kind: str) -> None:
    session = building.session(**loaded)
    bob = building.agent(key="bob", loadout="house")
    assert mail_catalog.decide(bob, session=session) == ("active", "loaded")
    assert building.active(mail_catalog.stored(), bob, session=session) == [
        "git__log",
        "mail__send",
        "web__get",
    ]
    decision = resolution.decide(
        resolution.build_context(building.snapshot(mail_catalog.stored(), bob, session=session)), "mail__send"
    )
    assert decision.origin == (kind, "mail" if kind == "plugin" else "mail__send", "mail")
    assert mail_catalog.decide(
        building.agent(key="bob", loadout="research"), session=building.session(**loaded)
    ) == (
        "active",
        "loaded",
    )
    assert mail_catalog.decide(building.agent(key="bob", loadout="full"), session=session) == (
        "dormant",
        "not-granted",
    )
    assert mail_catalog.decide(building.agent(key="bob"), session=session) == ("dormant", "not-granted")


def test_a_loaded_toolkit_that_is_no_longer_allowed_does_not_count() -> None:
    session = building.session("post")
    assert mail_catalog.decide(building.agent(key="bob", allowed="more"), session=session) == (
        "discoverable",
        "loadable",
    )
    assert mail_catalog.decide(building.agent(key="bob"), session=session) == ("dormant", "not-granted")


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
def test_a_loadout_grants_by_plugin_then_category_and_offers_by_pattern(
    key: str, answer: tuple[str, str]
) -> None:
    assert mail_catalog.decide(building.agent(key="bob", loadout="HOUSE"), key) == answer


def test_without_a_loadout_default_tools_are_active() -> None:
    assert building.active(mail_catalog.stored(), building.agent(key="bob")) == ["clock"]
    assert mail_catalog.decide(building.agent(key="bob"), "clock") == ("active", "default-on")


def test_an_agent_without_a_loadout_uses_that_of_its_kind() -> None:
    assert mail_catalog.decide(building.agent(key="bob", kind="plan"), "git__log") == (
        "active",
        "loadout-category",
    )
    assert mail_catalog.decide(building.agent(key="bob", kind="plan"), "clock") == ("discoverable", "pattern")


def test_an_unknown_loadout_grants_nothing_and_no_defaults() -> None:
    assert building.active(mail_catalog.stored(), building.agent(key="bob", loadout="ghost")) == []


def test_an_allowed_toolkit_is_the_reason_before_a_pattern() -> None:
    bob = building.agent(key="bob", loadout="house", allowed="more post")
    decision = resolution.decide(
        resolution.build_context(building.snapshot(mail_catalog.stored(), bob)), "mail__send"
    )
    assert (decision.code, decision.origin.name) == ("loadable", "post")


def test_initial_toolkits_are_active_without_a_session() -> None:
    bob = building.agent(key="bob", allowed="post more", initial="post")
    assert mail_catalog.decide(bob, session=None) == ("active", "initial")
    assert mail_catalog.decide(bob, "calc", session=None) == ("discoverable", "loadable")


def test_an_initial_toolkit_that_is_not_allowed_grants_nothing() -> None:
    assert mail_catalog.decide(building.agent(key="bob", initial="post")) == ("dormant", "not-granted")
