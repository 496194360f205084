"""Calls can be listed by caller and outcome."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.api.conftest import Asking, of_operator
from toolbelt import models

AT = dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC)


@pytest.fixture
def called(db: None) -> None:
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
    ("asked", "found"),
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
def test_they_are_narrowed_by_all_that_is_asked_for(
    olga: Asking, called: None, asked: str, found: list[str]
) -> None:
    answer = olga.get(f"/calls?{asked}").json()
    assert [call["session"] for call in answer["items"]] == found
    assert (answer["total"], answer["next"]) == (len(found), None)


def test_they_come_in_pages(olga: Asking, called: None) -> None:
    first = olga.get("/calls?limit=2").json()
    rest = olga.get(first["next"].removeprefix("/api/v1")).json()
    assert [call["session"] for call in (*first["items"], *rest["items"])] == ["s2", "s1", "s0"]
    assert (rest["next"], rest["total"]) == (None, 3)


def test_a_call_is_told_whole(olga: Asking, called: None) -> None:
    told = olga.get("/calls?session=s1").json()["items"][0]
    assert told.pop("id") > 0
    assert told == {
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
    }


def test_a_call_over_the_api_is_among_them(ada: Asking, olga: Asking) -> None:
    ada.post("/agents/ada/calls", {"tool": "nothing", "session": "s9", "arguments": {}})
    assert [
        (call["tool"], call["outcome"]) for call in olga.get("/calls?agent=ada&session=s9").json()["items"]
    ] == [("nothing", "unknown-tool")]


def test_they_are_for_those_who_may_see_them_in_the_admin(stored: None) -> None:
    assert Asking(of_operator("mia", "view_callrecord")).get("/calls").status_code == 200
    assert Asking(of_operator("ned", "view_agent")).get("/calls").status_code == 403
