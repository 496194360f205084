"""An archived agent does not exist for any interface, and is unchanged when it is restored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api import test_authorization
from tests.api.conftest import SETUP, Asking
from toolbelt.control import undo
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.people import tokens
from toolbelt.core import errors


@pytest.fixture
def archived(stored: None) -> Any:
    return agents.archive(SETUP.replace(confirm=True), "ada", True)


def test_its_own_token_opens_nothing_until_it_is_back(ada, subtests):
    assert ada.get("/agents/ada/surface").status_code == 200
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    for method, path, name in test_authorization.OPERATIONS:
        with subtests.test(name):
            answer = ada.send(method, test_authorization.address(path), {})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    agents.archive(SETUP, "ada", False)
    assert ada.get("/agents/ada/surface").status_code == 200


def test_an_operator_hears_that_it_is_archived_and_another_agent_that_it_is_not_there(
    olga, bob, archived, subtests
):
    # What a program ran is recorded, whatever has become of its agent, and declarations concern no agent.
    agents_own = test_authorization.AGENTS_OWN - {
        "report_outcome",
        "record_calls",
        "read_declared_tools",
        "declare_tools",
    }
    asked = [one for one in test_authorization.OPERATIONS if one[2] in agents_own]
    bodies = {
        "call_tool": {"tool": "clock", "arguments": {}},
        "admit_calls": {"calls": [{"tool": "clock"}]},
        "equip_session": {"loadout": "night"},
        "ask_for_surface": {},
    }
    for method, path, name in asked:
        with subtests.test(name):
            address = test_authorization.address(path)
            body = bodies.get(name)
            answer = olga.send(method, address, body)
            assert answer.status_code == 404, answer.content
            assert "ada is archived and answers no requests: bring it back" in answer.json()["detail"]
            other = bob.send(method, address, body)
            assert other.status_code == 404
            assert "archived" not in other.content.decode()


def test_it_is_listed_only_to_who_asks_for_it(olga, archived):
    def keys(**asked: Any) -> list[str]:
        return [entry["key"] for entry in olga.get("/agents", asked).json()["items"]]

    assert keys() == ["bob"]
    assert keys(archived="true") == ["ada"]
    assert olga.get("/agents/ada").json()["archived"] is True


def test_its_switches_stay_as_they_are(olga, archived):
    flip = olga.put("/agents/ada/switches/reading", {"on": True})
    assert (flip.status_code, flip.json()["code"]) == (409, "refused")
    assert "ada is archived and cannot be changed: bring it back first" in flip.json()["detail"]
    whole = olga.patch("/agents/ada/tools-config", {"clock": False})
    assert (whole.status_code, whole.json()["code"]) == (409, "refused")
    entry = olga.patch("/agents/ada", {"changes": {"title": "Ada"}})
    assert (entry.status_code, entry.json()["code"]) == (409, "refused")
    belt = olga.put("/belt", {"agents": [{"key": "ada", "archived": True, "title": "Ada"}]})
    assert belt.status_code == 422
    assert "agents.ada" in belt.content.decode()
    assert olga.get("/agents/ada/tools-config").json() == {"dropping": False}


def test_it_is_archived_and_brought_back_by_a_change_of_its_entry(olga, ada):
    asked = olga.patch("/agents/ada", {"changes": {"archived": True}})
    assert (asked.status_code, asked.json()["code"]) == (409, "confirmation-required")
    done = olga.patch("/agents/ada", {"changes": {"archived": True}, "confirm": True})
    assert done.json()["after"] == {"archived": True}
    assert ada.get("/agents/ada/surface").status_code == 401
    back = olga.patch("/agents/ada", {"changes": {"archived": None, "title": "Ada"}})
    assert back.status_code == 200
    assert ada.get("/agents/ada/surface").status_code == 200


def test_archiving_is_undone_and_told_once(archived):
    with pytest.raises(errors.Refused, match="is archived"):
        switches.flip(SETUP, "ada", "reading", True)
    undo.undo(SETUP, archived.entry)
    assert switches.flip(SETUP.replace(confirm=True), "ada", "reading", True).entry


def test_a_flip_from_before_is_undone_only_when_it_is_back(stored):
    done = switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    with pytest.raises(errors.Refused, match="bring it back first"):
        undo.undo(SETUP, done.entry or 0)
    agents.archive(SETUP, "ada", False)
    assert undo.undo(SETUP, done.entry or 0).entry


def test_a_copy_of_an_archived_agent_is_not(archived, olga):
    agents.duplicate(SETUP, "ada", "eve")
    assert "archived" not in olga.get("/agents/eve").json()


def test_a_token_that_is_issued_meanwhile_waits_too(archived, olga):
    asking = Asking(tokens.issue(SETUP, agent="ada").text)
    assert asking.get("/agents/ada/surface").status_code == 401
    agents.archive(SETUP, "ada", False)
    assert asking.get("/agents/ada/surface").status_code == 200
