"""Tests that users with the permission can set an agent's operators over the API."""

from __future__ import annotations

from django.contrib.auth import models as logins

from tests.api.conftest import SETUP, Asking
from toolbelt.control.people import roles, tokens

PATH = "/agents/ada/operators"


def test_operators_can_be_set_unless_the_list_changed_meanwhile(olga):
    logins.User.objects.create_user("anna")
    assert olga.get(PATH).json() == {"users": []}
    changed = olga.put(PATH, {"users": ["anna"], "was": []})
    assert changed.status_code == 200
    assert (changed.json()["before"], changed.json()["after"]) == ([], ["anna"])
    stale = olga.put(PATH, {"users": [], "was": []})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert olga.get(PATH).json() == {"users": ["anna"]}
    undone = olga.post(f"/changes/{changed.json()['change']}/undo", {})
    assert undone.status_code == 200
    assert olga.get(PATH).json() == {"users": []}


def test_unknown_agents_and_users_are_reported(olga):
    assert olga.get("/agents/adam/operators").status_code == 404
    unknown = olga.put(PATH, {"users": ["nobody"]})
    assert unknown.status_code == 404
    assert "nobody" in unknown.json()["detail"]


def test_an_operator_of_one_agent_can_flip_it_but_not_set_its_operators(stored):
    logins.User.objects.create_user("anna")
    roles.set_operators(SETUP, "ada", ["anna"])
    anna = Asking(tokens.issue(SETUP, user="anna", scope="write").text)
    assert anna.put("/agents/ada/switches/reading", {"on": True}).status_code == 200
    assert anna.put("/agents/bob/switches/reading", {"on": False}).status_code == 403
    assert anna.put(PATH, {"users": ["anna"]}).status_code == 403
