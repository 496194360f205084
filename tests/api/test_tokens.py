"""Tests that tokens are issued, shown once and revoked by those with the permission, and then rejected."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest
from django.contrib import auth

from tests.api.conftest import Asking, of_operator
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import tokens
from toolbelt.control.reports import queries
from toolbelt.runtime import calls


def test_an_issued_token_is_shown_once_and_works(olga: Asking) -> None:
    answer = olga.post("/tokens", {"agent": "ada", "name": "worker 3", "reason": "new worker"})

    assert answer.status_code == 201
    text, token = answer.json()["text"], answer.json()["token"]
    assert (token["agent"], token["operator"], token["scope"], token["name"]) == ("ada", "", "", "worker 3")
    assert Asking(text).get("/agents/ada/surface").status_code == 200
    listed = olga.get("/tokens")
    assert token["prefix"] in [item["prefix"] for item in listed.json()["items"]]
    assert text not in listed.content.decode()
    entry = queries.changes(action="token.issue").entries[0]
    assert (entry.actor, entry.via, entry.reason) == ("olga", "api", "new worker")
    assert text not in json.dumps([entry.before, entry.after])


def test_a_token_says_who_issued_it_and_why_it_is_rejected(olga: Asking) -> None:
    token = olga.post("/tokens", {"agent": "ada"}).json()["token"]
    assert (token["issued_by"], token["rejection"]) == ("olga", "")
    user = auth.get_user_model().objects.create(username="sam", is_active=False)
    of_sam = tokens.issue(writing.by("root", via="command"), user=user.username, scope="read").token
    models.Agent.objects.filter(key="ada").update(archived=True)
    listed = {item["prefix"]: item for item in olga.get("/tokens").json()["items"]}
    assert listed[token["prefix"]]["rejection"] == "archived"
    assert (listed[of_sam.prefix]["issued_by"], listed[of_sam.prefix]["rejection"]) == ("root", "deactivated")
    assert olga.delete(f"/tokens/{token['prefix']}").json()["rejection"] == "revoked"


def test_a_revoked_token_is_rejected(olga: Asking) -> None:
    issued = olga.post("/tokens", {"agent": "ada"}).json()
    answer = olga.delete(f"/tokens/{issued['token']['prefix']}?reason=lost")

    assert answer.status_code == 200
    assert answer.json()["revoked"] is not None
    assert Asking(issued["text"]).get("/agents/ada/surface").status_code == 401
    assert olga.delete(f"/tokens/{issued['token']['prefix']}").json()["revoked"] == answer.json()["revoked"]


@pytest.mark.parametrize("owner", ["agent", "operator"])
def test_a_call_that_waits_is_rejected_once_its_token_is_revoked(
    olga: Asking, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    body = {"agent": "ada"} if owner == "agent" else {"operator": "olga", "scope": "write"}
    issued = olga.post("/tokens", body).json()

    def wait_then_call(call: calls.Call, caller: calls.Caller) -> NoReturn:
        caller.may_call()
        olga.delete(f"/tokens/{issued['token']['prefix']}")
        caller.may_call()
        raise AssertionError("it may still call")

    monkeypatch.setattr(calls, "answer_blocking", wait_then_call)
    answer = Asking(issued["text"]).post("/agents/ada/calls", {"tool": "clock"})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_an_operator_can_only_issue_operator_tokens_for_themselves(olga: Asking) -> None:
    of_operator("mia")
    own = olga.post("/tokens", {"operator": "olga", "scope": "read"})
    assert (own.status_code, own.json()["token"]["scope"]) == (201, "read")
    other = olga.post("/tokens", {"operator": "mia", "scope": "read"})
    assert (other.status_code, other.json()["code"]) == (409, "refused")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"agent": "ada", "operator": "olga"}, 422),
        ({"agent": "adda"}, 404),
        ({"agent": "ada", "scope": "write"}, 422),
        ({"operator": "olga"}, 422),
        ({"operator": "olga", "scope": "all"}, 422),
        ({"agent": "ada", "expires": "2001-01-01T00:00:00Z"}, 422),
        ({"agent": "ada", "expires": "soon"}, 422),
        ({"agent": "ada", "for": "ever"}, 422),
    ],
)
def test_invalid_token_requests_are_refused(olga: Asking, body: dict[str, str], status: int) -> None:
    before = olga.get("/tokens").json()["total"]
    assert olga.post("/tokens", body).status_code == status
    assert olga.get("/tokens").json()["total"] == before


def test_tokens_require_the_same_permissions_as_in_the_admin(olga: Asking) -> None:
    prefix = olga.post("/tokens", {"agent": "ada"}).json()["token"]["prefix"]
    viewer = Asking(of_operator("mia", "view_apitoken"))

    assert viewer.get("/tokens").status_code == 200
    assert viewer.post("/tokens", {"agent": "ada"}).status_code == 403
    assert viewer.delete(f"/tokens/{prefix}").status_code == 403
    assert Asking(of_operator("ned")).get("/tokens").status_code == 403
    assert Asking(of_operator("pia", "add_apitoken")).post("/tokens", {"agent": "ada"}).status_code == 201
    assert Asking(of_operator("rob", "change_apitoken")).delete(f"/tokens/{prefix}").status_code == 200


def test_revoking_an_unknown_token_is_not_found(olga: Asking) -> None:
    assert olga.delete("/tokens/tb_nothing").status_code == 404
    assert olga.delete("/tokens/tb%00").status_code in (404, 422)
