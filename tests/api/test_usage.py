"""Tests that operators can read what is used, and whom a block concerns."""

from __future__ import annotations

import pytest

from tests import factories
from tests.api.conftest import Asking
from toolbelt import models
from toolbelt.control.catalog import entries

REACH = {
    "on_request": [],
    "conversations": {"continued": 0, "in_words": 0, "rewritten": 1, "restarted": 0},
}


def test_unused_tools_are_listed_in_pages_the_most_expensive_first(olga: Asking) -> None:
    everything = olga.get("/usage/tools").json()
    called = everything["items"][0]
    for agent in called["agents"]:
        factories.call(called["tool"], agent=agent)

    first = olga.get("/usage/tools?unused=true&limit=1").json()
    assert first["total"] == everything["total"] - 1
    assert called["tool"] not in [tool["tool"] for tool in first["items"]]
    again = olga.get("/usage/tools").json()["items"]
    found = next(tool for tool in again if tool["tool"] == called["tool"])
    assert (found["calls"], found["unused_by"]) == (len(called["agents"]), [])


def test_the_usage_of_one_agent_counts_its_calls(olga: Asking) -> None:
    tool = olga.get("/usage/tools?agent=ada").json()["items"][0]["tool"]
    factories.call(tool, agent="ada")
    factories.call(tool, agent="someone-else")
    items = olga.get("/usage/agents?agent=ada").json()["items"]
    assert [(item["agent"], item["calls"], item["unused"]) for item in items] == [
        ("ada", 1, items[0]["tools"] - 1)
    ]


@pytest.mark.parametrize(
    ("query", "status"), [("days=0", 422), ("days=401", 422), ("agent=nobody", 404), ("unused=true", 422)]
)
def test_a_bad_filter_of_usage_is_refused(olga: Asking, query: str, status: int) -> None:
    assert olga.get(f"/usage/agents?{query}").status_code == status


def test_a_block_answers_whom_it_concerns_also_in_a_dry_run(olga: Asking) -> None:
    tool = next(tool for tool in olga.get("/usage/tools").json()["items"] if "ada" in tool["agents"])
    key, reach = tool["tool"], {**REACH, "agents": dict.fromkeys(tool["agents"], 1)}

    factories.call(key, agent="ada", session="s1")

    tried = olga.patch(f"/tools/{key}", {"changes": {"blocked": True}, "dry_run": True}).json()
    assert (tried["reach"], tried["dry_run"], tried["change"]) == (reach, True, None)
    assert "blocked" not in entries.read("tool", key)

    assert olga.patch(f"/tools/{key}", {"changes": {"blocked": True}}).json()["reach"] == reach
    assert olga.patch(f"/tools/{key}", {"changes": {"blocked": True}}).json()["reach"] is None
    assert olga.patch(f"/tools/{key}", {"changes": {"blocked": None}}).json()["reach"] == reach
    assert olga.patch(f"/tools/{key}", {"changes": {"title": "T"}}).json()["reach"] is None
    assert models.Tool.objects.get(key=key).title == "T"
