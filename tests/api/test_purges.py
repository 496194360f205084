"""Tests of purging over the API."""

from __future__ import annotations

from tests.api.conftest import Asking
from toolbelt.control.catalog import purging


def test_a_purge_is_tried_confirmed_made_and_undone(olga: Asking) -> None:
    tried = olga.post("/tools/kb__find/purge", {"dry_run": True}).json()
    counts = {"continued": 0, "in_words": 0, "rewritten": 0, "restarted": 0}
    assert tried == {"change": None, "agents": ["ada", "bob"], "conversations": counts, "dry_run": True}

    asked = olga.post("/tools/kb__find/purge", {"reason": "A leak."})
    assert (asked.status_code, asked.json()["code"]) == (409, "confirmation-required")
    assert asked.json()["reasons"][0] == "No live conversations."
    assert asked.json()["differences"]["agents"] == ["ada", "bob"]
    assert purging.last("tool", "kb__find") is None

    made = olga.post("/tools/kb__find/purge", {"reason": "A leak.", "confirm": True}).json()
    assert purging.last("tool", "kb__find") is not None
    undone = olga.post(f"/changes/{made['change']}/undo", {})
    assert undone.status_code == 200
    assert purging.last("tool", "kb__find") is None


def test_what_never_existed_cannot_be_purged(olga: Asking) -> None:
    missing = olga.post("/toolkits/readng/purge", {"confirm": True})
    assert (missing.status_code, missing.json()["nearest"]) == (404, ["reading"])
