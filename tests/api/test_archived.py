"""Tests that an archived agent does not exist for any interface, and is unchanged when it is restored."""

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


def test_an_archived_agents_token_is_rejected_until_it_is_restored(ada, subtests):
    assert ada.get("/agents/ada/surface").status_code == 200
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    for method, path, name in test_authorization.OPERATIONS:
        with subtests.test(name):
            answer = ada.send(method, test_authorization.address(path), {})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    agents.archive(SETUP, "ada", False)
    assert ada.get("/agents/ada/surface").status_code == 200


def test_only_operators_learn_that_an_agent_is_archived(olga, bob, archived, subtests):
    # Finished client calls are recorded even for archived agents, what people decided can be read, and declarations do
    # not concern an agent.
    agents_own = test_authorization.AGENTS_OWN - {
        "report_outcome",
        "record_calls",
        "get_approval",
        "read_declared_tools",
        "declare_tools",
    }
    operations = [operation for operation in test_authorization.OPERATIONS if operation[2] in agents_own]
    bodies = {
        "call_tool": {"tool": "clock", "arguments": {}},
        "check_call": {"tool": "clock", "arguments": {}},
        "admit_calls": {"calls": [{"tool": "clock"}]},
        "equip_session": {"loadout": "night"},
        "ask_for_surface": {},
    }
    for method, path, name in operations:
        with subtests.test(name):
            address = test_authorization.address(path)
            body = bodies.get(name)
            answer = olga.send(method, address, body)
            assert answer.status_code == 404, answer.content
            assert "ada is archived and answers no requests: bring it back" in answer.json()["detail"]
            other = bob.send(method, address, body)
            assert other.status_code == 404
            assert "archived" not in other.content.decode()


def test_archived_agents_are_only_listed_on_request(olga, archived):
    def keys(**query: Any) -> list[str]:
        return [entry["key"] for entry in olga.get("/agents", query).json()["items"]]

    assert keys() == ["bob"]
    assert keys(archived="true") == ["ada"]
    assert olga.get("/agents/ada").json()["archived"] is True


def test_an_archived_agent_cannot_be_changed(olga, archived):
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


def test_an_agent_is_archived_and_restored_by_changing_its_entry(olga, ada):
    unconfirmed = olga.patch("/agents/ada", {"changes": {"archived": True}})
    assert (unconfirmed.status_code, unconfirmed.json()["code"]) == (409, "confirmation-required")
    archived = olga.patch("/agents/ada", {"changes": {"archived": True}, "confirm": True})
    assert archived.json()["after"] == {"archived": True}
    assert ada.get("/agents/ada/surface").status_code == 401
    restored = olga.patch("/agents/ada", {"changes": {"archived": None, "title": "Ada"}})
    assert restored.status_code == 200
    assert ada.get("/agents/ada/surface").status_code == 200


def test_archiving_can_be_undone(archived):
    with pytest.raises(errors.Refused, match="is archived"):
        switches.flip(SETUP, "ada", "reading", True)
    undo.undo(SETUP, archived.entry)
    assert switches.flip(SETUP.replace(confirm=True), "ada", "reading", True).entry


def test_a_flip_of_an_archived_agent_can_only_be_undone_after_restoring_it(stored):
    flip = switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    with pytest.raises(errors.Refused, match="bring it back first"):
        undo.undo(SETUP, flip.entry or 0)
    agents.archive(SETUP, "ada", False)
    assert undo.undo(SETUP, flip.entry or 0).entry


def test_a_duplicate_of_an_archived_agent_is_not_archived(archived, olga):
    agents.duplicate(SETUP, "ada", "eve")
    assert "archived" not in olga.get("/agents/eve").json()


def test_a_token_issued_for_an_archived_agent_works_once_it_is_restored(archived, olga):
    api_client = Asking(tokens.issue(SETUP, agent="ada").text)
    assert api_client.get("/agents/ada/surface").status_code == 401
    agents.archive(SETUP, "ada", False)
    assert api_client.get("/agents/ada/surface").status_code == 200
