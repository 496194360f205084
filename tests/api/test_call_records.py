"""Tests that calls can be listed and filtered."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.api.conftest import Asking, of_operator
from toolbelt import models

AT = dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC)


@pytest.fixture
def recorded_calls(db: None) -> None:
    for number, (agent, tool, outcome) in enumerate(
        [("ada", "clock", "ok"), ("ada", "kb__find", "tool-denied"), ("bob", "clock", "timed-out")]
    ):
        models.CallRecord.objects.create(
            at=AT + dt.timedelta(hours=number),
            agent=agent,
            session=f"s{number}",
            tool=tool,
            plugin="kb" if tool.startswith("kb") else "",
            outcome=outcome,
            duration_ms=number,
        )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["s2", "s1", "s0"]),
        ("agent=ada", ["s1", "s0"]),
        ("tool=clock&outcome=ok", ["s0"]),
        ("plugin=kb", ["s1"]),
        ("session=s2", ["s2"]),
        ("since=2026-05-04T04:02:01Z", ["s2", "s1"]),
        ("until=2026-05-04T04:02:01Z", ["s0"]),
        ("agent=eve", []),
    ],
)
def test_calls_are_filtered_by_all_parameters(
    olga: Asking, recorded_calls: None, query: str, expected: list[str]
) -> None:
    answer = olga.get(f"/calls?{query}").json()
    assert [call["session"] for call in answer["items"]] == expected
    assert (answer["total"], answer["next"]) == (len(expected), None)


def test_calls_are_listed_in_pages(olga: Asking, recorded_calls: None) -> None:
    first = olga.get("/calls?limit=2").json()
    rest = olga.get(first["next"].removeprefix("/api/v1")).json()
    assert [call["session"] for call in (*first["items"], *rest["items"])] == ["s2", "s1", "s0"]
    assert (rest["next"], rest["total"]) == (None, 3)


def test_a_call_is_listed_with_all_fields(olga: Asking, recorded_calls: None) -> None:
    call = olga.get("/calls?session=s1").json()["items"][0]
    assert call.pop("id") > 0
    assert call == {
        "at": "2026-05-04T04:02:01Z",
        "agent": "ada",
        "session": "s1",
        "request_id": "",
        "tool": "kb__find",
        "plugin": "kb",
        "outcome": "tool-denied",
        "reason": "",
        "revision": None,
        "error": "",
        "duration_ms": 1,
        "arguments_bytes": 0,
        "result_bytes": 0,
        "arguments": None,
        "subagent": None,
        "person": None,
        "dispatched": None,
        "detail": None,
        "chosen_fields": None,
        "rule": None,
        "would": None,
        "trial": None,
    }


def test_a_call_made_over_the_api_is_listed(ada: Asking, olga: Asking) -> None:
    ada.post("/agents/ada/calls", {"tool": "nothing", "session": "s9", "arguments": {}})
    assert [
        (call["tool"], call["outcome"]) for call in olga.get("/calls?agent=ada&session=s9").json()["items"]
    ] == [("nothing", "unknown-tool")]


def test_listing_calls_requires_the_permission_to_view_them(stored: None) -> None:
    assert Asking(of_operator("mia", "view_callrecord")).get("/calls").status_code == 200
    assert Asking(of_operator("ned", "view_agent")).get("/calls").status_code == 403
