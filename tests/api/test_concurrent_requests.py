"""Tests that concurrent writes over the API are not lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import concurrently
from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt.control.access import tools_config
from toolbelt.control.config import belts
from toolbelt.control.reports import queries

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = [f"tool{number}" for number in range(8)]


@pytest.fixture
def stored() -> None:
    """Store a small configuration so that other threads see it."""
    tools = [{"key": key, "annotations": {"readOnlyHint": True}} for key in TOOLS]
    belts.import_(SETUP, {"tools": tools, "agents": [{"key": "ada"}]})


def test_concurrent_changes_of_different_keys_all_succeed(olga: Asking) -> None:
    mia = Asking(of_operator("mia", "change_agent"))

    def patch(key: str, api_client: Asking) -> Callable[[], Any]:
        return lambda: api_client.patch("/agents/ada/tools-config", {key: True})

    def flip(key: str, api_client: Asking) -> Callable[[], Any]:
        return lambda: api_client.put(f"/agents/ada/overrides/{key}", {"on": True, "was": None})

    answers = concurrently.done(
        [
            *(patch(key, api_client) for key, api_client in zip(TOOLS[:4], (olga, mia) * 2, strict=True)),
            *(flip(key, api_client) for key, api_client in zip(TOOLS[4:], (olga, mia) * 2, strict=True)),
        ]
    )

    assert [answer.status_code for answer in answers] == [200] * 8
    assert tools_config.read("ada") == dict.fromkeys(TOOLS, True)
    changes = queries.changes(action="override.set")
    assert changes.total == 8
    assert {entry.actor for entry in changes.entries} == {"olga", "mia"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_of_concurrent_writes_with_the_same_etag_only_one_succeeds(olga: Asking, method: str) -> None:
    seen = olga.get("/agents/ada/tools-config")["ETag"]

    def write(key: str) -> Callable[[], Any]:
        return lambda: olga.send(method, "/agents/ada/tools-config", {key: True}, **{"If-Match": seen})

    answers = concurrently.done([write(key) for key in TOOLS[:4]])

    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    (accepted,) = (answer for answer in answers if answer.status_code == 200)
    assert tools_config.read("ada") == accepted.json()["after"]


def test_of_concurrent_creations_of_one_agent_only_one_succeeds(olga: Asking) -> None:
    answers = concurrently.done([lambda: olga.post("/agents", {"key": "eve"})] * 4)
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert queries.changes(action="agent.create", name="eve", kind="agent").total == 1


def test_of_concurrent_imports_with_the_same_etag_only_one_succeeds(olga: Asking) -> None:
    seen = olga.get("/belt")["ETag"]

    def import_(name: str) -> Callable[[], Any]:
        return lambda: olga.put("/belt", {"agents": [{"key": name}]}, **{"If-Match": seen})

    answers = concurrently.done([import_(name) for name in ("eve", "bob", "kim")])
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]
    assert len(belts.export()["agents"]) == 2
