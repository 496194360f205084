"""A flip over the API states a value, compares with what was read, and returns its effect."""

from __future__ import annotations

import pytest

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt.control.access import switches, tools_config
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.reports import queries

SWITCH = "/agents/ada/switches/reading"
OVERRIDE = "/agents/ada/overrides/kb__find"


def test_a_switch_is_set_and_what_that_does_is_told(olga: Asking) -> None:
    answer = olga.put(SWITCH, {"on": True, "was": None, "reason": "on call"})

    assert answer.status_code == 200
    told = answer.json()
    assert (told["before"], told["after"]) == (None, True)
    assert told["effect"]["tools"] == [1, 3]
    assert told["effect"]["added"] == ["kb__find", "kb__read"]
    written = queries.change(told["change"])
    assert written is not None
    assert (written.action, written.key, written.reason, written.via) == (
        "switch.set",
        "reading",
        "on call",
        "api",
    )


def test_what_is_so_already_changes_nothing(olga: Asking) -> None:
    answer = olga.put("/agents/ada/switches/dropping", {"on": False})
    assert answer.json() == {
        "change": None,
        "before": False,
        "after": False,
        "effect": None,
        "dry_run": False,
        "reasons": [],
    }
    assert olga.delete(SWITCH).json()["change"] is None


def test_a_dry_run_has_the_effect_that_the_screen_shows_and_writes_nothing(olga: Asking) -> None:
    revision = belts.revision()
    told = olga.put(SWITCH, {"on": True, "dry_run": True}).json()
    assert (told["change"], told["dry_run"], told["after"]) == (None, True, True)
    effect = switches.preview("ada", "reading", True)
    assert told["effect"]["added"] == list(effect.added)
    assert (told["effect"]["sessions"], told["effect"]["breaks"]) == (effect.sessions, list(effect.breaks))
    assert belts.revision() == revision
    assert tools_config.read("ada") == {"dropping": False}


def test_a_dry_run_says_what_would_have_to_be_confirmed(olga: Asking) -> None:
    told = olga.put("/agents/ada/switches/dropping", {"on": True, "dry_run": True}).json()
    assert "destructive" in told["reasons"][0]
    cleared = olga.delete("/agents/ada/switches/dropping?dry_run=true").json()
    assert (cleared["dry_run"], cleared["before"], cleared["after"]) == (True, False, None)
    assert tools_config.read("ada") == {"dropping": False}


def test_a_dry_run_is_refused_where_the_change_would_be(olga: Asking) -> None:
    assert olga.put("/agents/ada/switches/none", {"on": True, "dry_run": True}).status_code == 404
    stale = olga.put(SWITCH, {"on": True, "was": False, "dry_run": True})
    assert stale.json()["code"] == "stale"


def test_whole_configurations_and_entries_have_a_dry_run_too(olga: Asking) -> None:
    revision = belts.revision()
    put = olga.put("/agents/ada/tools-config?dry_run=true", {"reading": True})
    assert put.json()["effect"]["added"] == ["kb__find", "kb__read"]
    assert "ETag" not in put.headers
    patched = olga.patch("/agents/ada", {"changes": {"tools": ["kb__find"]}, "dry_run": True})
    assert patched.json()["effect"]["added"] == ["kb__find"]
    assert belts.revision() == revision


def test_a_flip_that_saw_another_state_is_told_what_it_is_now(olga: Asking) -> None:
    answer = olga.put("/agents/ada/switches/dropping", {"on": True, "was": None, "confirm": True})

    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert (answer.json()["was"], answer.json()["now"], answer.json()["wanted"]) == (None, False, True)
    assert tools_config.read("ada") == {"dropping": False}


def test_what_destroys_something_is_asked_about_with_the_differences(olga: Asking) -> None:
    asked = olga.put("/agents/ada/switches/dropping", {"on": True})

    assert (asked.status_code, asked.json()["code"]) == (409, "confirmation-required")
    assert asked.json()["reasons"] == ["Enables destructive tools: kb__drop."]
    assert asked.json()["differences"]["tools"] == [1, 2]
    assert tools_config.read("ada") == {"dropping": False}

    assert olga.put("/agents/ada/switches/dropping", {"on": True, "confirm": True}).status_code == 200
    assert tools_config.read("ada") == {"dropping": True}


@pytest.mark.parametrize("body", [{}, {"on": None}, {"on": True, "wsa": False}, []])
def test_a_body_of_another_shape_is_refused_with_its_path(olga: Asking, body: object) -> None:
    answer = olga.put(SWITCH, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"]


def test_it_takes_the_permission_that_the_screens_ask_for(stored: None) -> None:
    may = Asking(of_operator("mia", "change_agent"))
    may_not = Asking(of_operator("ned", "view_agent", "change_toolkit"))

    refused = may_not.put(SWITCH, {"on": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "toolbelt.change_agent" in refused.json()["detail"]
    assert may.put(SWITCH, {"on": True}).status_code == 200


def test_a_flip_may_have_an_end(olga: Asking) -> None:
    answer = olga.put(SWITCH, {"on": True, "ends": "2099-01-02T03:04:05+01:00"})

    assert answer.json()["after"] == {"on": True, "ends": "2099-01-02T02:04:05Z", "then": None}
    assert olga.get("/agents/ada").json()["ends"]["reading"]["at"] == "2099-01-02T02:04:05Z"
    assert tools_config.read("ada") == {"dropping": False, "reading": True}


@pytest.mark.parametrize("ends", ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00", "soon", 4102444800])
def test_an_end_that_cannot_be_is_named(olga: Asking, ends: object) -> None:
    answer = olga.put(SWITCH, {"on": True, "ends": ends})

    assert answer.status_code == 422
    assert [wrong["path"].rpartition(".")[2] for wrong in answer.json()["errors"]] == ["ends"]


def test_an_operator_of_one_agent_flips_that_one_alone(stored):
    only_bob = Asking(of_operator("anna"))
    roles.set_operators(SETUP, "bob", ["anna"])

    assert only_bob.put("/agents/bob/switches/reading", {"on": False}).status_code == 200
    assert only_bob.put("/agents/bob/overrides/clock", {"on": False}).status_code == 200
    assert only_bob.patch("/agents/bob/tools-config", {"hidden": False}).status_code == 200
    undone = only_bob.get("/changes", {"agent": "bob"}).json()["items"][0]["id"]
    assert only_bob.post(f"/changes/{undone}/undo", {}).status_code == 200

    refused = only_bob.put("/agents/ada/switches/reading", {"on": False})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert only_bob.patch("/agents/bob", {"changes": {"title": "Mine"}}).status_code == 403
    assert only_bob.post("/agents/ada/calls", {"tool": "clock", "arguments": {}}).status_code == 403
