"""Concurrent writes over the API lose nothing."""

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


def test_operators_who_write_different_keys_all_get_through(olga: Asking) -> None:
    mia = Asking(of_operator("mia", "change_agent"))

    def patching(key: str, asking: Asking) -> Callable[[], Any]:
        return lambda: asking.patch("/agents/ada/tools-config", {key: True})

    def flipping(key: str, asking: Asking) -> Callable[[], Any]:
        return lambda: asking.put(f"/agents/ada/overrides/{key}", {"on": True, "was": None})

    answers = concurrently.done(
        [
            *(patching(key, asking) for key, asking in zip(TOOLS[:4], (olga, mia) * 2, strict=True)),
            *(flipping(key, asking) for key, asking in zip(TOOLS[4:], (olga, mia) * 2, strict=True)),
        ]
    )

    assert [answer.status_code for answer in answers] == [200] * 8
    assert tools_config.read("ada") == dict.fromkeys(TOOLS, True)
    found = queries.changes(action="override.set")
    assert found.total == 8
    assert {entry.actor for entry in found.entries} == {"olga", "mia"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_of_operators_who_saw_the_same_one_is_done_and_the_others_are_told(olga: Asking, method: str) -> None:
    seen = olga.get("/agents/ada/tools-config")["ETag"]

    def writing(key: str) -> Callable[[], Any]:
        return lambda: olga.send(method, "/agents/ada/tools-config", {key: True}, **{"If-Match": seen})

    answers = concurrently.done([writing(key) for key in TOOLS[:4]])

    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    (done,) = (answer for answer in answers if answer.status_code == 200)
    assert tools_config.read("ada") == done.json()["after"]


def test_of_operators_who_create_the_same_one_does_and_the_others_are_told(olga: Asking) -> None:
    answers = concurrently.done([lambda: olga.post("/agents", {"key": "eve"})] * 4)
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert queries.changes(action="agent.create", name="eve", kind="agent").total == 1


def test_of_imports_that_saw_the_same_revision_one_is_done(olga: Asking) -> None:
    seen = olga.get("/belt")["ETag"]

    def importing(name: str) -> Callable[[], Any]:
        return lambda: olga.put("/belt", {"agents": [{"key": name}]}, **{"If-Match": seen})

    answers = concurrently.done([importing(name) for name in ("eve", "bob", "kim")])
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]
    assert len(belts.export()["agents"]) == 2
