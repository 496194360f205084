"""Tests of approvals over HTTP: what agents read of them, who decides, and waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import models as logins
from django.http import HttpRequest

from tests.api.conftest import SETUP, Asking
from toolbelt import models
from toolbelt.api import call_approvals
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals as deciding
from toolbelt.control.catalog import entries
from toolbelt.control.people import roles, tokens
from toolbelt.runtime import plugins
from toolbelt.runtime.calls import approval_waits

OLIVE = writing.by("olive", via="screen")
RULE = {"key": "time", "effect": "ask", "tools": ["clock"], "reason": "Time is money."}
CALL = {"tool": "clock", "arguments": {"zone": "UTC", "password": "hunter2-hunter2"}}


class AnyPlugin:
    """A registry that runs every admitted tool."""

    async def execute(self, *args: Any, check: Callable[[], Any], **options: Any) -> dict[str, Any]:
        await check()
        return {"time": "noon"}


@pytest.fixture
def asking(stored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask about each call of the clock."""
    monkeypatch.setattr(plugins, "serves", lambda plugin, tool: True)
    monkeypatch.setattr(plugins, "registry", AnyPlugin)
    entries.put(SETUP, "gate_rule", RULE)


def asking_as(role: str, name: str = "olive", scope: str = "write") -> Asking:
    if not logins.User.objects.filter(username=name).exists():
        logins.User.objects.create_user(name)
    if role:
        roles.assign(SETUP, name, role)  # type: ignore[arg-type]
    return Asking(tokens.issue(SETUP, user=name, scope=scope).text)


def agent(key: str = "ada") -> Asking:
    return Asking(tokens.issue(SETUP, agent=key).text)


def pending(client: Asking) -> str:
    answer = client.post("/agents/ada/calls", CALL).json()
    assert answer["code"] == "approval-pending"
    return str(answer["approval"]["id"])


@pytest.mark.parametrize(
    ("past", "does"),
    [({}, "asks"), ({"without": ["checked"]}, "asks, until the session has checked")],
)
def test_a_call_is_approved_over_http_and_runs_once(asking: None, past: dict[str, Any], does: str) -> None:
    entries.put(SETUP, "gate_rule", {**RULE, **past})
    ada, olive = agent(), asking_as("operator")
    key = pending(ada)
    (listed,) = olive.get("/approvals").json()["items"]
    assert (listed["id"], listed["state"], listed["rules"]) == (key, "pending", ["time"])
    details = olive.get(f"/agents/ada/approvals/{key}/details").json()
    assert [(each["name"], each["is_hidden"]) for each in details["arguments"]] == [
        ("password", True),
        ("zone", False),
    ]
    assert details["rules"] == [{"key": "time", "does": does, "reason": "Time is money."}]
    approved = olive.post(f"/agents/ada/approvals/{key}/approve", {"shown": listed["shown"]})
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")
    assert ada.get(f"/agents/ada/approvals/{key}").json()["state"] == "approved"
    assert ada.post("/agents/ada/calls", CALL).json()["content"] == {"time": "noon"}
    state = ada.get(f"/agents/ada/approvals/{key}").json()
    assert (state["state"], state["outcome"]) == ("done", "ok")
    assert "approval.approve" in models.AuditEntry.objects.values_list("action", flat=True)


def test_the_result_of_an_edited_call_says_so_beside_its_content(asking: None) -> None:
    ada, olive = agent(), asking_as("operator")
    path = f"/agents/ada/approvals/{pending(ada)}"
    edited = olive.post(
        f"{path}/edit",
        {"shown": olive.get("/approvals").json()["items"][0]["shown"], "arguments": {"zone": "Asia/Tokyo"}},
    ).json()
    olive.post(f"{path}/approve", {"shown": edited["shown"]})
    answer = ada.post("/agents/ada/calls", CALL).json()
    assert answer["content"] == {"time": "noon"}
    assert answer["notice"].endswith('zone is "Asia/Tokyo" instead of "UTC".')


def test_a_call_is_checked_before_it_is_made(asking: None) -> None:
    ada, check = agent(), "/agents/ada/calls/check"
    assert ada.post(check, CALL).json()["would"] == "wait"
    assert not models.Approval.objects.exists()
    asked = ada.post(check, {**CALL, "ask": True}).json()
    assert (asked["code"], asked["approval"]["id"]) == ("approval-pending", models.Approval.objects.get().key)
    unknown = ada.post(check, {"tool": "clok"}).json()
    assert (unknown["would"], unknown["code"]) == ("refuse", "unknown-tool")
    assert not models.CallRecord.objects.exists()


def test_an_operators_token_without_write_scope_checks_no_call(asking: None) -> None:
    olive = asking_as("operator", scope="read")
    assert olive.post("/agents/ada/calls/check", {**CALL, "ask": True}).status_code == 403
    assert not models.Approval.objects.exists()


def test_an_agent_reads_the_state_of_its_own_requests_and_nothing_else(asking: None) -> None:
    ada = agent()
    key = pending(ada)
    state = ada.get(f"/agents/ada/approvals/{key}").json()
    assert state.keys() == {"id", "agent", "tool", "state", "asked", "expires", "note", "outcome"}
    assert ada.get(f"/agents/ada/approvals/{key}/details").status_code == 403
    assert ada.get("/approvals").status_code == 403
    assert ada.post(f"/agents/ada/approvals/{key}/approve", {"shown": "x"}).status_code == 403
    bob = agent("bob")
    assert bob.get(f"/agents/bob/approvals/{key}").status_code == 404
    assert bob.get(f"/agents/ada/approvals/{key}").status_code == 404
    assert deciding.find(key).state == "pending"


def test_a_call_is_approved_for_days_over_http_and_revoked(asking: None) -> None:
    ada, olive = agent(), asking_as("approver")
    call = {"tool": "clock", "arguments": {"zone": "UTC"}}
    key = ada.post("/agents/ada/calls", call).json()["approval"]["id"]
    shown = olive.get("/approvals").json()["items"][0]["shown"]
    path = f"/agents/ada/approvals/{key}"
    assert olive.post(f"{path}/approve", {"shown": shown, "always_days": 31}).status_code == 422
    approved = olive.post(f"{path}/approve", {"shown": shown, "always_days": 30}).json()
    assert (approved["state"], bool(approved["always"])) == ("approved", True)
    assert [ada.post("/agents/ada/calls", call).json()["is_error"] for _ in range(2)] == [False, False]
    assert [each["id"] for each in olive.get("/approvals?always=true").json()["items"]] == [key]
    by = [each["always_of"] for each in olive.get("/approvals?state=done").json()["items"]]
    assert by == [key, ""]
    (decider,) = olive.get("/approvals/deciders").json()["items"]
    assert (decider["name"], decider["decided"], decider["approved"]) == ("olive", 1, 1)
    assert asking_as("", "nina").get("/approvals/deciders").json()["items"] == []
    assert ada.post(f"{path}/revoke", {}).status_code == 403
    assert olive.post(f"{path}/revoke", {}).json()["always"] is None
    assert olive.post(f"{path}/revoke", {}).status_code == 409
    assert ada.post("/agents/ada/calls", call).json()["code"] == "approval-pending"


def test_who_may_not_decide_about_the_agent_sees_and_decides_nothing(asking: None) -> None:
    key = pending(agent())
    for other in (asking_as("viewer", "vera"), asking_as("", "bobs")):
        roles.set_operators(SETUP, "bob", ["bobs"])
        assert other.get("/approvals").json()["items"] == []
        assert other.get(f"/agents/ada/approvals/{key}/details").status_code == 403
        assert other.post(f"/agents/ada/approvals/{key}/reject", {}).status_code == 403
    # Nor about ada's call as if it were bob's.
    assert asking_as("", "bobs").post(f"/agents/bob/approvals/{key}/reject", {}).status_code == 404
    reader = asking_as("operator", "rita", scope="read")
    assert len(reader.get("/approvals").json()["items"]) == 1
    assert reader.post(f"/agents/ada/approvals/{key}/reject", {}).status_code == 403
    roles.set_operators(SETUP, "ada", ["bobs"])
    answer = asking_as("", "bobs").post(f"/agents/ada/approvals/{key}/reject", {"note": "No."}).json()
    assert (answer["state"], answer["rejected_by"], answer["note"]) == ("rejected", "bobs", "No.")


def test_an_operator_does_not_approve_the_call_of_their_own_token(asking: None) -> None:
    olive = asking_as("operator")
    key = pending(olive)
    shown = deciding.find(key).shown
    answer = olive.post(f"/agents/ada/approvals/{key}/approve", {"shown": shown})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    otto = asking_as("operator", "otto")
    assert otto.post(f"/agents/ada/approvals/{key}/approve", {"shown": shown}).status_code == 200
    # The approval is for olive's call, and not for otto's or the agent's own.
    assert pending(otto) != key
    assert pending(agent()) != key
    assert olive.post("/agents/ada/calls", CALL).json()["is_error"] is False


def test_bad_decisions_name_what_is_wrong(asking: None) -> None:
    olive = asking_as("operator")
    key = pending(agent())
    shown = deciding.find(key).shown
    path = f"/agents/ada/approvals/{key}"
    stale = olive.post(f"{path}/approve", {"shown": "0"})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    hidden = olive.post(f"{path}/edit", {"shown": shown, "arguments": {"password": "x"}})
    assert (hidden.status_code, hidden.json()["errors"][0]["path"]) == (422, "password")
    assert olive.post(f"{path}/reject", {"note": "x" * 501}).status_code == 422
    assert olive.post("/agents/ada/approvals/NOSUCH/reject", {}).status_code == 404
    edited = olive.post(f"{path}/edit", {"shown": shown, "arguments": {"zone": "CET"}}).json()
    assert (edited["arguments"]["zone"], edited["edited_by"]) == ("CET", "olive")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=20", 20),
        ("respond-async, wait=10", 10),
        ('Wait="5"', 5),
        ("wait=3600", call_approvals.MAX_WAIT),
        ("", 0),
        ("waits=3", 0),
        ("wait=-3", 0),
        ("wait=x", 0),
    ],
)
def test_a_request_says_how_long_it_prefers_to_wait(header: str, seconds: float) -> None:
    request = HttpRequest()
    request.META["HTTP_PREFER"] = header
    assert call_approvals.preferred_wait(request) == seconds


def test_a_wait_is_bounded(asking: None) -> None:
    ada = agent()
    key = pending(ada)
    for seconds in ("46", "-1", "x"):
        assert ada.get(f"/agents/ada/approvals/{key}", {"wait": seconds}).status_code == 422


@pytest.mark.parametrize("road", ["calls", "calls/admit"])
def test_a_call_is_answered_once_it_is_decided(
    asking: None, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    waited = []

    async def decide(key: str, seconds: float, on_tick: Any = None) -> bool:
        waited.append(seconds)
        await sync_to_async(deciding.approve)(OLIVE, key, (await sync_to_async(deciding.find)(key)).shown)
        return True

    monkeypatch.setattr(approval_waits, "until_decided", decide)
    ada = agent()
    if road == "calls/admit":
        entries.put(SETUP, "plugin", {"name": "own", "namespace": "own"})
        entries.put(SETUP, "tool", {"key": "own__do", "plugin": "own"})
        entries.change(SETUP, "gate_rule", "time", {"tools": ["own__do"]})
        entries.change(SETUP.replace(confirm=True), "agent", "ada", {"tools": ["clock", "own__do"]})
        body: dict[str, Any] = {"calls": [{"tool": "own__do", "arguments": {}}]}
        answer = ada.post("/agents/ada/calls/admit", body, prefer="wait=20").json()["calls"][0]
        assert answer["call_id"]
    else:
        answer = ada.post("/agents/ada/calls", CALL, prefer="wait=20").json()
        assert answer["content"] == {"time": "noon"}
    assert answer["is_error"] is False
    assert waited == [20.0]
