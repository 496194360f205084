"""Tests that a flip over the API sets a value, checks the value that was read, and returns its effect."""

from __future__ import annotations

import pytest

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt.control.access import switches, tools_config
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.reports import queries

SWITCH = "/agents/ada/switches/reading"
OVERRIDE = "/agents/ada/overrides/kb__find"


def test_setting_a_switch_returns_its_effect(olga: Asking) -> None:
    answer = olga.put(SWITCH, {"on": True, "was": None, "reason": "on call"})

    assert answer.status_code == 200
    change = answer.json()
    assert (change["before"], change["after"]) == (None, True)
    assert change["effect"]["tools"] == [1, 3]
    assert change["effect"]["added"] == ["kb__find", "kb__read"]
    entry = queries.change(change["change"])
    assert entry is not None
    assert (entry.action, entry.key, entry.reason, entry.via) == (
        "switch.set",
        "reading",
        "on call",
        "api",
    )


def test_setting_the_current_value_changes_nothing(olga: Asking) -> None:
    answer = olga.put("/agents/ada/switches/dropping", {"on": False})
    assert answer.json() == {
        "change": None,
        "before": False,
        "after": False,
        "effect": None,
        "reach": None,
        "dry_run": False,
        "reasons": [],
        "left_out": [],
        "past": None,
        "draft": None,
    }
    assert olga.delete(SWITCH).json()["change"] is None


def test_a_dry_run_returns_the_effect_shown_on_screen_and_writes_nothing(olga: Asking) -> None:
    revision = belts.revision()
    dry_run = olga.put(SWITCH, {"on": True, "dry_run": True}).json()
    assert (dry_run["change"], dry_run["dry_run"], dry_run["after"]) == (None, True, True)
    effect = switches.preview("ada", "reading", True)
    assert dry_run["effect"]["added"] == list(effect.added)
    assert (dry_run["effect"]["sessions"], dry_run["effect"]["breaks"]) == (
        effect.sessions,
        list(effect.breaks),
    )
    assert belts.revision() == revision
    assert tools_config.read("ada") == {"dropping": False}


def test_a_dry_run_lists_what_requires_confirmation(olga: Asking) -> None:
    dry_run = olga.put("/agents/ada/switches/dropping", {"on": True, "dry_run": True}).json()
    assert "destructive" in dry_run["reasons"][0]
    cleared = olga.delete("/agents/ada/switches/dropping?dry_run=true").json()
    assert (cleared["dry_run"], cleared["before"], cleared["after"]) == (True, False, None)
    assert tools_config.read("ada") == {"dropping": False}


def test_a_dry_run_is_refused_like_the_change(olga: Asking) -> None:
    assert olga.put("/agents/ada/switches/none", {"on": True, "dry_run": True}).status_code == 404
    stale = olga.put(SWITCH, {"on": True, "was": False, "dry_run": True})
    assert stale.json()["code"] == "stale"


def test_tools_config_and_entries_have_a_dry_run(olga: Asking) -> None:
    revision = belts.revision()
    put = olga.put("/agents/ada/tools-config?dry_run=true", {"reading": True})
    assert put.json()["effect"]["added"] == ["kb__find", "kb__read"]
    assert "ETag" not in put.headers
    patched = olga.patch("/agents/ada", {"changes": {"tools": ["kb__find"]}, "dry_run": True})
    assert patched.json()["effect"]["added"] == ["kb__find"]
    assert belts.revision() == revision


def test_a_stale_flip_is_refused_with_the_current_value(olga: Asking) -> None:
    answer = olga.put("/agents/ada/switches/dropping", {"on": True, "was": None, "confirm": True})

    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert (answer.json()["was"], answer.json()["now"], answer.json()["wanted"]) == (None, False, True)
    assert tools_config.read("ada") == {"dropping": False}


def test_a_destructive_tool_requires_confirmation_with_the_differences(olga: Asking) -> None:
    unconfirmed = olga.put("/agents/ada/switches/dropping", {"on": True})

    assert (unconfirmed.status_code, unconfirmed.json()["code"]) == (409, "confirmation-required")
    assert unconfirmed.json()["reasons"] == ["Enables destructive tools: kb__drop."]
    assert unconfirmed.json()["differences"]["tools"] == [1, 2]
    assert tools_config.read("ada") == {"dropping": False}

    assert olga.put("/agents/ada/switches/dropping", {"on": True, "confirm": True}).status_code == 200
    assert tools_config.read("ada") == {"dropping": True}


@pytest.mark.parametrize("body", [{}, {"on": None}, {"on": True, "wsa": False}, []])
def test_an_invalid_body_is_refused_with_its_path(olga: Asking, body: object) -> None:
    answer = olga.put(SWITCH, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"]


def test_flipping_requires_the_same_permission_as_on_screen(stored: None) -> None:
    allowed = Asking(of_operator("mia", "change_agent"))
    not_allowed = Asking(of_operator("ned", "view_agent", "change_toolkit"))

    refused = not_allowed.put(SWITCH, {"on": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "toolbelt.change_agent" in refused.json()["detail"]
    assert allowed.put(SWITCH, {"on": True}).status_code == 200


def test_a_flip_can_have_an_end(olga: Asking) -> None:
    answer = olga.put(SWITCH, {"on": True, "ends": "2099-01-02T03:04:05+01:00"})

    assert answer.json()["after"] == {"on": True, "ends": "2099-01-02T02:04:05Z", "then": None}
    assert olga.get("/agents/ada").json()["ends"]["reading"]["at"] == "2099-01-02T02:04:05Z"
    assert tools_config.read("ada") == {"dropping": False, "reading": True}


@pytest.mark.parametrize("ends", ["2001-01-01T00:00:00Z", "2099-01-01T00:00:00", "soon", 4102444800])
def test_an_invalid_end_is_refused_at_its_path(olga: Asking, ends: object) -> None:
    answer = olga.put(SWITCH, {"on": True, "ends": ends})

    assert answer.status_code == 422
    assert [error["path"].rpartition(".")[2] for error in answer.json()["errors"]] == ["ends"]


def test_an_operator_of_one_agent_can_only_flip_that_agent(stored):
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
