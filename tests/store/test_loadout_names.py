"""Tests that a system check warns of unknown loadout names."""

from __future__ import annotations

import pytest
from django.core import checks
from django.db import DatabaseError, connection

from tests import factories
from toolbelt.store import loadout_names

pytestmark = pytest.mark.django_db


def warnings() -> list[tuple[str | None, str]]:
    messages = loadout_names.check(None, ["default"])
    assert all(message.hint for message in messages)
    return [(message.id, message.msg.partition(":")[0]) for message in messages]


def test_valid_loadout_names_are_not_reported() -> None:
    factories.everything()
    factories.loadout("Developer", parent="HOUSE")
    factories.agent("bea", loadout="DEVELOPER", session_loadouts=["full", "House"])

    assert warnings() == []


def test_an_unknown_parent_is_reported_for_the_loadout_that_names_it() -> None:
    factories.loadout("house", parent="gone")
    factories.loadout("annex", parent="house")

    assert warnings() == [("toolbelt.W003", "The loadout 'house' inherits from 'gone', which does not exist")]


def test_a_cycle_is_reported_for_each_loadout_in_it() -> None:
    factories.loadout("a", parent="B")
    factories.loadout("b", parent="a")
    factories.loadout("below", parent="a")
    factories.loadout("minimal", parent="developer")

    assert warnings() == [
        ("toolbelt.W003", "The loadout 'a' inherits from itself, through 'B'"),
        ("toolbelt.W003", "The loadout 'b' inherits from itself, through 'a'"),
        ("toolbelt.W003", "The loadout 'minimal' inherits from itself, through 'developer'"),
    ]


def test_an_agent_with_unknown_loadouts_is_reported() -> None:
    factories.agent("ada", loadout="gone", session_loadouts=["gone", "lost", "full"])

    assert [text.partition(",")[0] for code, text in warnings() if code == "toolbelt.W004"] == [
        "The agent 'ada' names the loadout 'gone'",
        "The agent 'ada' names the loadout 'lost'",
    ]


def test_an_unknown_name_in_a_loadout_is_reported_with_its_field() -> None:
    factories.tool("git__push", plugin=factories.plugin("git"))
    factories.loadout(
        "house", plugins=["Git", "gitt"], discoverable=["docker*"], disabled=["git__push", "pus"]
    )

    assert warnings() == [
        ("toolbelt.W006", "The loadout 'house' names 'gitt' in plugins"),
        ("toolbelt.W006", "The loadout 'house' names 'pus' in disabled"),
    ]


def test_a_kind_with_an_unknown_loadout_is_reported(settings) -> None:
    settings.TOOLBELT_KIND_LOADOUTS = {"plan": "house", "task": "gone"}
    factories.loadout("House")

    [(code, text)] = warnings()
    assert code == "toolbelt.W005"
    assert "the kind task the loadout 'gone'" in text


def test_an_invalid_setting_is_left_to_its_own_check(settings) -> None:
    settings.TOOLBELT_KIND_LOADOUTS = "gone"

    assert warnings() == []


def test_nothing_is_reported_before_and_halfway_through_the_migrations() -> None:
    factories.loadout("house", parent="gone")

    def refuse(*args: object) -> None:
        raise DatabaseError("no such table or column")

    with connection.execute_wrapper(refuse):
        assert warnings() == []


def test_the_check_is_registered_as_a_database_check() -> None:
    factories.loadout("house", parent="gone")

    ids = {message.id for message in checks.run_checks(tags=["database"], databases=["default"])}
    assert "toolbelt.W003" in ids
