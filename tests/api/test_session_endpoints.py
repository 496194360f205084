"""Tests that an application can list and change its sessions."""

from __future__ import annotations

from urllib import parse

import pytest

from tests.api.conftest import SETUP, Asking
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.runtime import surfaces
from toolbelt.store import agent_sessions


def load(agent: Asking, session: str, request_id: str = "r1") -> None:
    sent = {
        "session": session,
        "request_id": request_id,
        "tool": "load_tools",
        "arguments": {"toolkit": "reading"},
    }
    assert agent.post("/agents/ada/calls", sent).json()["content"]["status"] == "loaded"


def test_sessions_are_listed_with_their_loads_and_times(ada):
    for session in ("s1", "s2", "s3"):
        load(ada, session)
    page = ada.get("/agents/ada/sessions", {"limit": 2}).json()
    assert page["total"] == 3
    assert [listed["session"] for listed in page["items"]] == ["s3", "s2"]
    [change] = page["items"][0]["changes"]
    assert (change["kind"], change["name"], change["loaded"], change["request_id"]) == (
        "toolkit",
        "reading",
        True,
        "r1",
    )
    assert change["at"]
    rest = ada._client.get(page["next"]).json()
    assert [listed["session"] for listed in rest["items"]] == ["s1"]
    assert rest["next"] is None


def test_a_session_can_be_read(ada, olga):
    load(ada, "s1")
    for api_client in (ada, olga):
        assert api_client.get("/agents/ada/sessions/s1").json()["session"] == "s1"
    missing = ada.get("/agents/ada/sessions/s2")
    assert missing.status_code == 404
    assert missing.json()["detail"].startswith("There is no session named 's2', or its agent has not loaded")
    assert olga.get("/agents/adda/sessions").status_code == 404


def test_an_agent_can_evict_its_session(ada):
    load(ada, "s1")
    answer = ada.delete("/agents/ada/sessions/s1")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "kb__find" not in surfaces.ask("ada", "s1").document()["active_tools"]
    [entry] = queries.changes(action="session.evict").entries
    assert (entry.actor, entry.via, entry.subject_key, entry.key) == ("agent:ada", "api", "ada", "s1")
    assert entry.before == {"loaded": ["reading"], "loadout": None}
    assert ada.delete("/agents/ada/sessions/s1").status_code == 404


def test_an_agent_can_equip_its_session_with_allowed_loadouts(ada):
    answer = ada.put("/agents/ada/sessions/s1", {"loadout": "night"})
    assert (answer.status_code, answer.json()["loadout"]) == (200, "night")
    assert "kb__read" in surfaces.ask("ada", "s1").document()["active_tools"]
    assert "kb__read" not in surfaces.ask("ada", "s2").document()["active_tools"]
    answer = ada.put("/agents/ada/sessions/s1", {"loadout": "full"})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "Its session_loadouts are night" in answer.json()["detail"]
    assert ada.put("/agents/ada/sessions/s1", {"loadout": ""}).json()["loadout"] == ""


def test_an_agent_cannot_remove_a_loadout_that_an_operator_set(bob, olga):
    def denied() -> bool:
        return "kb__find" not in surfaces.ask("bob", "s1").document()["active_tools"]

    assert not denied()
    belts.import_(SETUP, {"loadouts": [{"name": "quiet", "disabled": ["kb__find"]}]})
    assert olga.put("/agents/bob/sessions/s1", {"loadout": "quiet"}).status_code == 200
    for answer in (
        bob.put("/agents/bob/sessions/s1", {"loadout": ""}),
        bob.put("/agents/bob/sessions/s1", {"loadout": "", "was": "quiet"}),
        bob.delete("/agents/bob/sessions/s1"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        assert "Its session_loadouts are empty" in answer.json()["detail"]
        assert denied()
    assert olga.delete("/agents/bob/sessions/s1").status_code == 204
    assert not denied()


def test_clearing_the_loadout_of_an_unknown_session_stores_nothing(ada):
    answer = ada.put("/agents/ada/sessions/new", {"loadout": ""})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "agent": "ada",
            "session": "new",
            "loadout": "",
            "changes": [],
            "labels": [],
            "created": None,
            "changed": None,
        },
    )
    assert not models.AgentSession.objects.exists()


@pytest.mark.parametrize("session", ["a/b", "/a", "a/", "a//b", "x/surface", "sessions/s1"])
def test_a_session_id_can_contain_slashes(ada, session):
    load(ada, session)
    for path in (session, parse.quote(session, safe="")):
        address = f"/agents/ada/sessions/{path}"
        assert ada.put(address, {"loadout": "night"}).json()["session"] == session
        answer = ada.get(address).json()
        assert (answer["session"], answer["loadout"]) == (session, "night")
    assert ada.delete(f"/agents/ada/sessions/{session}").status_code == 204
    assert not models.AgentSession.objects.exists()


def test_an_operator_can_equip_a_session_with_any_loadout(olga):
    assert olga.put("/agents/bob/sessions/s1", {"loadout": "full"}).status_code == 200
    answer = olga.put("/agents/bob/sessions/s1", {"loadout": "fulll"})
    assert (answer.status_code, answer.json()["nearest"]) == (404, ["full"])
    stale = olga.put("/agents/bob/sessions/s1", {"loadout": "minimal", "was": "night"})
    assert (stale.status_code, stale.json()["now"]) == (409, "full")


def test_an_invalid_session_id_is_refused_on_writing(olga):
    for name in ("x" * 201, "a%00b", "a%0Ab"):
        answer = olga.put(f"/agents/bob/sessions/{name}", {"loadout": "full"})
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "session")
        assert olga.get(f"/agents/bob/sessions/{name}").status_code == 404
    assert not models.AgentSession.objects.exists()


def test_an_operator_clears_a_label_and_the_agent_cannot(ada, olga):
    agent_sessions.bring("ada", "s1", ["private", "untrusted"], "kb__find")
    label = {"session": "s1", "label": "private"}
    assert ada.post("/agents/ada/labels/clear", label).status_code == 403
    shown = ada.get("/agents/ada/sessions/s1").json()["labels"]
    assert [(each["name"], each["tool"]) for each in shown] == [
        ("private", "kb__find"),
        ("untrusted", "kb__find"),
    ]
    cleared = olga.post("/agents/ada/labels/clear", {**label, "reason": "A test."})
    assert (cleared.status_code, [each["name"] for each in cleared.json()["labels"]]) == (200, ["untrusted"])
    assert olga.post("/agents/ada/labels/clear", label).status_code == 404
    [entry] = queries.changes(action="session.clear").entries
    assert (entry.actor, entry.reason) == ("olga", "A test.")
