"""The log is filtered, and changes are undone by operators who may make the reverse change."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt.control import writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries

NIGHT = writing.by("nora", via="screen")


@pytest.fixture
def changed(stored: None) -> list[int]:
    """Change a few things; give the numbers of the changes, in order."""
    done = [
        switches.flip(NIGHT.replace(reason="on call"), "ada", "reading", True),
        switches.override(SETUP, "bob", "clock", False),
        entries.change(NIGHT, "toolkit", "reading", {"title": "Books"}),
    ]
    return [one.entry or 0 for one in done]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("actor=nora", [2, 0]),
        ("agent=ada&via=screen", [0]),
        ("action=override.set", [1]),
        ("key=reading", [0]),
        ("kind=toolkit&name=reading&actor=nora", [2]),
        ("kind=agent&actor=nora", [0]),
        ("actor=nobody", []),
        ("agent=ada&kind=toolkit", []),
        ("agent=ada&name=bob", []),
        ("agent=ada&kind=agent&name=ada&actor=nora", [0]),
    ],
)
def test_it_is_narrowed_by_all_that_is_asked_for(
    olga: Asking, changed: list[int], asked: str, found: list[int]
) -> None:
    answer = olga.get(f"/changes?{asked}").json()
    assert [item["id"] for item in answer["items"]] == [changed[number] for number in found]
    assert answer["total"] == len(found)


def test_a_change_is_told_whole(olga: Asking, changed: list[int]) -> None:
    listed = olga.get("/changes?agent=ada&actor=nora").json()["items"][0]
    assert olga.get(f"/changes/{changed[0]}").json() == listed
    at = dt.datetime.fromisoformat(listed.pop("at"))
    assert abs(timezone.now() - at) < dt.timedelta(minutes=5)
    assert listed == {
        "id": changed[0],
        "actor": "nora",
        "via": "screen",
        "action": "switch.set",
        "kind": "agent",
        "name": "ada",
        "key": "reading",
        "before": None,
        "after": True,
        "reason": "on call",
        "batch": None,
        "undoes": None,
        "undone": None,
    }


def test_what_was_in_a_thing_is_withheld_from_who_may_not_look_at_it(changed: list[int]) -> None:
    entries.change(NIGHT, "plugin", "kb", {"title": "Knowledge"})
    told: dict[int, list[dict[str, Any]]] = {}
    for asking in (Asking(of_operator("ned")), Asking(of_operator("vera", "view_plugin"))):
        listed = asking.get("/changes?actor=nora").json()["items"]
        assert asking.get(f"/changes/{listed[0]['id']}").json() == listed[0]
        told[len(told)] = listed

    assert (told[0][0]["kind"], told[0][0]["before"], told[0][0]["after"]) == ("plugin", None, None)
    assert told[1][0]["after"]
    assert told[0][1:] == told[1][1:]


def test_it_is_read_page_by_page_and_what_happens_meanwhile_moves_nothing(
    olga: Asking, changed: list[int]
) -> None:
    first = olga.get("/changes?limit=2").json()
    switches.flip(NIGHT, "ada", "reading", None)
    rest = olga.get(first["next"].removeprefix("/api/v1")).json()

    read = [item["id"] for item in (*first["items"], *rest["items"])]
    assert read[:4] == [changed[2], changed[1], changed[0], changed[0] - 1]
    last = olga.get(f"/changes?older_than={read[-1] + 1}&limit=200").json()
    assert last["next"] is None


def test_it_is_narrowed_by_time(olga: Asking, changed: list[int]) -> None:
    at = olga.get(f"/changes/{changed[1]}").json()["at"].replace("+", "%2B")
    since = [item["id"] for item in olga.get(f"/changes?since={at}").json()["items"]]
    until = [item["id"] for item in olga.get(f"/changes?until={at}").json()["items"]]
    assert since == [changed[2], changed[1]]
    assert until[0] == changed[0]


def test_the_entries_of_one_act_are_found_by_their_batch(olga: Asking, stored: None) -> None:
    done = tools_config.put(NIGHT, "bob", {"clock": True})
    batch = olga.get(f"/changes/{done.entry}").json()["batch"]
    assert [item["key"] for item in olga.get(f"/changes?batch={batch}").json()["items"]] == [
        "clock",
        "reading",
    ]


@pytest.mark.parametrize(
    "asked", ["limit=0", "batch=x", "since=yesterday", "since=2026-01-01T00:00:00", "older_than=-1", "who=x"]
)
def test_a_question_that_makes_no_sense_is_refused_with_its_name(olga: Asking, asked: str) -> None:
    answer = olga.get(f"/changes?{asked}")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, asked.partition("=")[0])


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("2020-01-01T00:00:00-23:59", 200),
        ("2020-01-01T00:00:00%2B23:59", 200),
        ("0001-01-01T00:00:00%2B14:00", 422),
        ("9999-12-31T23:59:59-14:00", 422),
    ],
)
def test_moments_at_the_ends_of_time_break_no_database(olga: Asking, moment: str, status: int) -> None:
    assert olga.get(f"/changes?since={moment}").status_code == status
    assert olga.get(f"/calls?until={moment}").status_code == status


def test_a_change_is_taken_back_by_one_of_its_own(olga: Asking, changed: list[int]) -> None:
    answer = olga.post(f"/changes/{changed[0]}/undo", {"reason": "too early"})

    assert answer.status_code == 200
    assert answer.json()["effect"]["removed"] == ["kb__find", "kb__read"]
    assert tools_config.read("ada") == {"dropping": False}
    told = olga.get(f"/changes/{changed[0]}").json()
    assert (told["undone"]["id"], told["undone"]["actor"]) == (answer.json()["change"], "olga")
    undoing = olga.get(f"/changes/{answer.json()['change']}").json()
    assert (undoing["undoes"], undoing["via"], undoing["reason"]) == (changed[0], "api", "too early")


def test_a_whole_act_is_taken_back_as_one(olga: Asking, stored: None) -> None:
    done = tools_config.put(NIGHT, "bob", {"clock": True})
    answer = olga.post(f"/changes/{done.entry}/undo", {"whole": True})
    assert answer.status_code == 200
    assert tools_config.read("bob") == {"reading": True}


def test_what_was_changed_since_is_not_taken_back(olga: Asking, changed: list[int]) -> None:
    switches.flip(SETUP, "ada", "reading", False)
    answer = olga.post(f"/changes/{changed[0]}/undo", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert (answer.json()["was"], answer.json()["now"]) == (True, False)


def test_taking_back_takes_the_permission_to_do_the_reverse(changed: list[int]) -> None:
    may_flip = Asking(of_operator("mia", "change_agent"))
    assert may_flip.post(f"/changes/{changed[2]}/undo", {}).status_code == 403
    assert may_flip.post(f"/changes/{changed[0]}/undo", {}).status_code == 200
    done = tools_config.put(NIGHT.replace(confirm=True), "bob", {"kb__find": True})
    assert Asking(of_operator("ned")).post(f"/changes/{done.entry}/undo", {"whole": True}).status_code == 403


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999999999999"])
def test_a_number_that_no_change_can_have_is_refused(olga: Asking, number: str) -> None:
    assert olga.get(f"/changes/{number}").status_code == 422


def test_a_change_that_is_not_there_is_not_found(olga: Asking) -> None:
    assert olga.get("/changes/4711").status_code == 404
    assert olga.post("/changes/4711/undo", {}).status_code == 404
    assert olga.post("/changes/4711/undo", {"whole": True}).status_code == 404


def test_what_happened_to_a_token_is_not_taken_back(olga: Asking) -> None:
    issued = queries.changes(action="token.issue").entries[0].id
    answer = olga.post(f"/changes/{issued}/undo", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


def test_listing_costs_the_same_however_much_was_changed(olga: Asking, changed: list[int]) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as asked:
            olga.get("/changes?actor=nora&limit=2")
        return len(asked)

    count()
    few = count()
    for on in (False, True, False, True):
        switches.flip(NIGHT, "ada", "reading", on)
    assert count() == few <= 8
