"""A token is shown once, issued and revoked by those with the permission, and rejected afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from tests.api.conftest import Asking, of_operator
from toolbelt.control.reports import queries
from toolbelt.runtime import calls


def test_a_token_is_shown_once_and_opens_what_it_is_for(olga: Asking) -> None:
    answer = olga.post("/tokens", {"agent": "ada", "name": "worker 3", "reason": "new worker"})

    assert answer.status_code == 201
    text, token = answer.json()["text"], answer.json()["token"]
    assert (token["agent"], token["operator"], token["scope"], token["name"]) == ("ada", "", "", "worker 3")
    assert Asking(text).get("/agents/ada/surface").status_code == 200
    listed = olga.get("/tokens")
    assert token["prefix"] in [one["prefix"] for one in listed.json()["items"]]
    assert text not in listed.content.decode()
    written = queries.changes(action="token.issue").entries[0]
    assert (written.actor, written.via, written.reason) == ("olga", "api", "new worker")
    assert text not in json.dumps([written.before, written.after])


def test_a_token_that_was_revoked_opens_nothing(olga: Asking) -> None:
    issued = olga.post("/tokens", {"agent": "ada"}).json()
    answer = olga.delete(f"/tokens/{issued['token']['prefix']}?reason=lost")

    assert answer.status_code == 200
    assert answer.json()["revoked"] is not None
    assert Asking(issued["text"]).get("/agents/ada/surface").status_code == 401
    assert olga.delete(f"/tokens/{issued['token']['prefix']}").json()["revoked"] == answer.json()["revoked"]


@pytest.mark.parametrize("whose", ["agent", "operator"])
def test_a_token_that_is_revoked_while_its_call_waits_opens_the_call_no_more(
    olga: Asking, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    holder = {"agent": "ada"} if whose == "agent" else {"operator": "olga", "scope": "write"}
    issued = olga.post("/tokens", holder).json()

    def waiting(*about: Any, may_call: Callable[[], object], **more: Any) -> NoReturn:
        may_call()
        olga.delete(f"/tokens/{issued['token']['prefix']}")
        may_call()
        raise AssertionError("it may still call")

    monkeypatch.setattr(calls, "run", waiting)
    answer = Asking(issued["text"]).post("/agents/ada/calls", {"tool": "clock"})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_an_operator_issues_tokens_of_their_own_and_of_nobody_else(olga: Asking) -> None:
    of_operator("mia")
    own = olga.post("/tokens", {"operator": "olga", "scope": "read"})
    assert (own.status_code, own.json()["token"]["scope"]) == (201, "read")
    other = olga.post("/tokens", {"operator": "mia", "scope": "read"})
    assert (other.status_code, other.json()["code"]) == (409, "refused")


@pytest.mark.parametrize(
    ("wanted", "status"),
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
def test_a_token_that_makes_no_sense_is_not_issued(olga: Asking, wanted: dict[str, str], status: int) -> None:
    before = olga.get("/tokens").json()["total"]
    assert olga.post("/tokens", wanted).status_code == status
    assert olga.get("/tokens").json()["total"] == before


def test_it_takes_the_permissions_that_the_admin_asks_for(olga: Asking) -> None:
    prefix = olga.post("/tokens", {"agent": "ada"}).json()["token"]["prefix"]
    may_look = Asking(of_operator("mia", "view_apitoken"))

    assert may_look.get("/tokens").status_code == 200
    assert may_look.post("/tokens", {"agent": "ada"}).status_code == 403
    assert may_look.delete(f"/tokens/{prefix}").status_code == 403
    assert Asking(of_operator("ned")).get("/tokens").status_code == 403
    assert Asking(of_operator("pia", "add_apitoken")).post("/tokens", {"agent": "ada"}).status_code == 201
    assert Asking(of_operator("rob", "change_apitoken")).delete(f"/tokens/{prefix}").status_code == 200


def test_one_that_is_not_there_is_not_found(olga: Asking) -> None:
    assert olga.delete("/tokens/tb_nothing").status_code == 404
    assert olga.delete("/tokens/tb%00").status_code in (404, 422)
