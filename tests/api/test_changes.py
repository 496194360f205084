"""Tests that the audit log can be filtered, and that operators can undo changes that they may make in reverse."""

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
from toolbelt.store import revisions

NIGHT = writing.by("nora", via="screen")


@pytest.fixture
def changed(stored: None) -> list[int]:
    """Make a few changes, and return their numbers in order."""
    changes = [
        switches.flip(NIGHT.replace(reason="on call"), "ada", "reading", True),
        switches.override(SETUP, "bob", "clock", False),
        entries.change(NIGHT, "toolkit", "reading", {"title": "Books"}),
    ]
    return [change.entry or 0 for change in changes]


@pytest.mark.parametrize(
    ("query", "expected"),
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
def test_changes_are_filtered_by_all_parameters(
    olga: Asking, changed: list[int], query: str, expected: list[int]
) -> None:
    answer = olga.get(f"/changes?{query}").json()
    assert [item["id"] for item in answer["items"]] == [changed[number] for number in expected]
    assert answer["total"] == len(expected)


def test_a_change_is_returned_with_all_fields(olga: Asking, changed: list[int]) -> None:
    listed = olga.get("/changes?agent=ada&actor=nora").json()["items"][0]
    assert olga.get(f"/changes/{changed[0]}").json() == listed
    at = dt.datetime.fromisoformat(listed.pop("at"))
    assert abs(timezone.now() - at) < dt.timedelta(minutes=5)
    assert 0 < listed.pop("revision") <= revisions.number()
    assert listed == {
        "id": changed[0],
        "actor": "nora",
        "actor_kind": "person",
        "asked_by": "",
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
        "unlogged": None,
    }


def test_values_are_withheld_from_operators_who_may_not_view_the_subject(changed: list[int]) -> None:
    entries.change(NIGHT, "plugin", "kb", {"title": "Knowledge"})
    lists: dict[int, list[dict[str, Any]]] = {}
    for api_client in (Asking(of_operator("ned")), Asking(of_operator("vera", "view_plugin"))):
        listed = api_client.get("/changes?actor=nora").json()["items"]
        assert api_client.get(f"/changes/{listed[0]['id']}").json() == listed[0]
        lists[len(lists)] = listed

    assert (lists[0][0]["kind"], lists[0][0]["before"], lists[0][0]["after"]) == ("plugin", None, None)
    assert lists[1][0]["after"]
    assert lists[0][1:] == lists[1][1:]


def test_pages_do_not_shift_when_changes_are_added(olga: Asking, changed: list[int]) -> None:
    first = olga.get("/changes?limit=2").json()
    switches.flip(NIGHT, "ada", "reading", None)
    rest = olga.get(first["next"].removeprefix("/api/v1")).json()

    read = [item["id"] for item in (*first["items"], *rest["items"])]
    assert read[:4] == [changed[2], changed[1], changed[0], changed[0] - 1]
    last = olga.get(f"/changes?older_than={read[-1] + 1}&limit=200").json()
    assert last["next"] is None


def test_changes_are_filtered_by_time(olga: Asking, changed: list[int]) -> None:
    at = olga.get(f"/changes/{changed[1]}").json()["at"].replace("+", "%2B")
    since = [item["id"] for item in olga.get(f"/changes?since={at}").json()["items"]]
    until = [item["id"] for item in olga.get(f"/changes?until={at}").json()["items"]]
    assert since == [changed[2], changed[1]]
    assert until[0] == changed[0]


def test_entries_are_filtered_by_their_batch(olga: Asking, stored: None) -> None:
    change = tools_config.put(NIGHT, "bob", {"clock": True})
    batch = olga.get(f"/changes/{change.entry}").json()["batch"]
    assert [item["key"] for item in olga.get(f"/changes?batch={batch}").json()["items"]] == [
        "clock",
        "reading",
    ]


@pytest.mark.parametrize(
    "query", ["limit=0", "batch=x", "since=yesterday", "since=2026-01-01T00:00:00", "older_than=-1", "who=x"]
)
def test_an_invalid_parameter_is_refused_with_its_name(olga: Asking, query: str) -> None:
    answer = olga.get(f"/changes?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, query.partition("=")[0])


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("2020-01-01T00:00:00-23:59", 200),
        ("2020-01-01T00:00:00%2B23:59", 200),
        ("0001-01-01T00:00:00%2B14:00", 422),
        ("9999-12-31T23:59:59-14:00", 422),
    ],
)
def test_extreme_times_and_offsets_never_cause_a_server_error(olga: Asking, moment: str, status: int) -> None:
    assert olga.get(f"/changes?since={moment}").status_code == status
    assert olga.get(f"/calls?until={moment}").status_code == status


def test_undoing_a_change_records_a_change_that_refers_to_it(olga: Asking, changed: list[int]) -> None:
    answer = olga.post(f"/changes/{changed[0]}/undo", {"reason": "too early"})

    assert answer.status_code == 200
    assert answer.json()["effect"]["removed"] == ["kb__find", "kb__read"]
    assert tools_config.read("ada") == {"dropping": False}
    undone = olga.get(f"/changes/{changed[0]}").json()
    assert (undone["undone"]["id"], undone["undone"]["actor"]) == (answer.json()["change"], "olga")
    undoing = olga.get(f"/changes/{answer.json()['change']}").json()
    assert (undoing["undoes"], undoing["via"], undoing["reason"]) == (changed[0], "api", "too early")


def test_a_whole_batch_can_be_undone(olga: Asking, stored: None) -> None:
    change = tools_config.put(NIGHT, "bob", {"clock": True})
    answer = olga.post(f"/changes/{change.entry}/undo", {"whole": True})
    assert answer.status_code == 200
    assert tools_config.read("bob") == {"reading": True}


def test_undoing_a_value_that_changed_since_is_refused(olga: Asking, changed: list[int]) -> None:
    switches.flip(SETUP, "ada", "reading", False)
    answer = olga.post(f"/changes/{changed[0]}/undo", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert (answer.json()["was"], answer.json()["now"]) == (True, False)


def test_undoing_requires_the_permission_for_the_reverse_change(changed: list[int]) -> None:
    may_flip = Asking(of_operator("mia", "change_agent"))
    assert may_flip.post(f"/changes/{changed[2]}/undo", {}).status_code == 403
    assert may_flip.post(f"/changes/{changed[0]}/undo", {}).status_code == 200
    change = tools_config.put(NIGHT.replace(confirm=True), "bob", {"kb__find": True})
    assert (
        Asking(of_operator("ned")).post(f"/changes/{change.entry}/undo", {"whole": True}).status_code == 403
    )


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999999999999"])
def test_an_invalid_change_number_is_refused(olga: Asking, number: str) -> None:
    assert olga.get(f"/changes/{number}").status_code == 422


def test_an_unknown_change_is_not_found(olga: Asking) -> None:
    assert olga.get("/changes/4711").status_code == 404
    assert olga.post("/changes/4711/undo", {}).status_code == 404
    assert olga.post("/changes/4711/undo", {"whole": True}).status_code == 404


def test_changes_of_tokens_cannot_be_undone(olga: Asking) -> None:
    issued = queries.changes(action="token.issue").entries[0].id
    answer = olga.post(f"/changes/{issued}/undo", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


def test_listing_takes_a_constant_number_of_queries(olga: Asking, changed: list[int]) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            olga.get("/changes?actor=nora&limit=2")
        return len(captured)

    count()
    few = count()
    for on in (False, True, False, True):
        switches.flip(NIGHT, "ada", "reading", on)
    assert count() == few <= 8
