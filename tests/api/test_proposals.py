"""Tests that the API proposes a smaller belt, for those who may import it and view calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.api.conftest import Asking, of_operator
from tests.factories import call as recorded
from toolbelt import models
from toolbelt.control.config import belts

PERMISSIONS = ("add_loadout", "change_loadout", "add_agent", "change_agent", "view_callrecord")


@pytest.fixture(autouse=True)
def calls(stored: None) -> None:
    # As if it had been configured before the period.
    models.AuditEntry.objects.all()._raw_delete(models.AuditEntry.objects.db)
    facts = factories.facts("kb__find")
    for at in range(60):
        recorded("kb__find", agent="bob", days_ago=at % 30, **facts)


def test_a_smaller_belt_is_proposed_with_its_proof(olga: Asking) -> None:
    revision = belts.revision()

    answer = olga.post("/proposals", {"agents": ["bob"], "turn_off": True})

    assert answer.status_code == 200
    proposal = answer.json()
    [bob] = proposal["agents"]
    assert (bob["agent"], bob["calls"], bob["exception"]) == ("bob", 60, None)
    assert bob["tools"] == [3, 1]
    assert proposal["tokens"] == bob["tokens"]
    assert [entry["key"] for entry in proposal["belt"]["agents"]] == ["bob"]
    assert (proposal["proof"]["refused"], proposal["proof"]["unproven"]) == (0, {})
    assert belts.revision() == revision


def test_its_belt_can_be_imported(olga: Asking) -> None:
    belt = olga.post("/proposals", {"agents": ["bob"], "turn_off": True}).json()["belt"]

    assert olga.put("/belt", belt).status_code == 200
    assert olga.post("/proposals", {"agents": ["bob"], "turn_off": True}).json()["belt"] == {}


def test_all_agents_are_looked_at_and_those_with_few_calls_stay(olga: Asking) -> None:
    proposal = olga.post("/proposals", {}).json()

    assert {one["agent"]: one["exception"] for one in proposal["agents"]} == {"ada": "few-calls", "bob": None}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"agents": ["nobody"]}, 404),
        ({"days": 0}, 422),
        ({"keep": ["*x"]}, 422),
        ({"agents": "bob"}, 422),
        ({"other": 1}, 422),
    ],
)
def test_impossible_requests_are_refused(olga: Asking, body: dict[str, Any], status: int) -> None:
    assert olga.post("/proposals", body).status_code == status


@pytest.mark.parametrize("missing", PERMISSIONS)
def test_it_takes_the_permission_to_import_it_and_to_view_calls(missing: str, stored: None) -> None:
    allowed = Asking(of_operator("all", *PERMISSIONS))
    assert allowed.post("/proposals", {}).status_code == 200
    without = Asking(of_operator("less", *(name for name in PERMISSIONS if name != missing)))
    assert without.post("/proposals", {}).status_code == 403


def test_agents_may_not_ask(bob: Asking, anonymous: Asking) -> None:
    assert bob.post("/proposals", {}).status_code == 403
    assert anonymous.post("/proposals", {}).status_code == 401
