"""Tests that the flat tools_config is read and written as a whole or in part, and refused when outdated."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import SETUP, Asking
from toolbelt.control.access import switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.store import clock

ADDRESS = "/agents/ada/tools-config"
MISSPELLED = {"kb__dropp": True, "dropping": None, "raeding": False}


def test_tools_config_is_read_as_a_flat_mapping_with_an_etag(olga: Asking) -> None:
    answer = olga.get(ADDRESS)
    assert (answer.status_code, answer.json()) == (200, {"dropping": False})

    again = olga.get(ADDRESS, **{"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])


def test_a_patch_sets_the_given_keys_and_keeps_the_others(olga: Asking) -> None:
    answer = olga.patch(f"{ADDRESS}?reason=night", {"reading": True, "clock": False})

    change = answer.json()
    assert answer.status_code == 200
    assert change["before"] == {"reading": None, "clock": None}
    assert change["after"] == {"reading": True, "clock": False}
    assert change["effect"]["tools"] == [1, 2]
    assert change["effect"]["tokens"][1] > change["effect"]["tokens"][0]
    assert (change["effect"]["added"], change["effect"]["removed"]) == (["kb__find", "kb__read"], ["clock"])
    assert change["effect"]["policy"] == [["reading", "none", "on"]]
    assert tools_config.read("ada") == {"clock": False, "dropping": False, "reading": True}
    assert answer["ETag"] == olga.get(ADDRESS)["ETag"]
    newest = queries.changes(agent="ada", size=2).entries
    assert [(entry.actor, entry.via, entry.reason) for entry in newest] == [("olga", "api", "night")] * 2
    assert newest[0].id == change["change"]
    assert newest[0].batch is not None
    assert newest[0].batch == newest[1].batch


def test_null_clears_a_key(olga: Asking) -> None:
    assert olga.patch(ADDRESS, {"dropping": None}).json()["after"] == {"dropping": None}
    assert tools_config.read("ada") == {}


def test_a_put_clears_the_keys_that_are_not_given(olga: Asking) -> None:
    assert olga.put(ADDRESS, {"reading": True}).status_code == 200
    assert olga.get(ADDRESS).json() == {"reading": True}


def test_putting_back_what_was_read_changes_nothing(olga: Asking) -> None:
    read = olga.get(ADDRESS).json()
    answer = olga.put(ADDRESS, read).json()
    assert [answer[key] for key in ("change", "before", "after", "effect")] == [None, {}, {}, None]


def test_ends_are_read_separately_from_the_mapping_of_booleans(olga: Asking) -> None:
    olga.put("/agents/ada/switches/reading", {"on": True, "ends": "2099-01-02T03:04:05Z"})
    read = olga.get(ADDRESS)
    assert read.json() == {"dropping": False, "reading": True}

    ends = olga.get(f"{ADDRESS}/ends")
    assert ends.json() == {"reading": {"at": "2099-01-02T03:04:05Z", "then": None, "by": "olga"}}
    assert olga.get(f"{ADDRESS}/ends", **{"If-None-Match": ends["ETag"]}).status_code == 304
    # Writing back what was read keeps every end; a changed value is permanent.
    assert olga.put(ADDRESS, read.json()).json()["change"] is None
    assert olga.patch(ADDRESS, {"dropping": None}).status_code == 200
    assert olga.get(f"{ADDRESS}/ends").json() == ends.json()
    olga.patch(ADDRESS, {"reading": False})
    assert olga.get(f"{ADDRESS}/ends").json() == {}


def test_an_expired_switch_has_no_end(olga: Asking) -> None:
    olga.put("/agents/ada/switches/reading", {"on": True, "ends": "2099-01-02T03:04:05Z"})
    with clock.stopped(dt.datetime(2099, 1, 2, 3, 4, 5, tzinfo=dt.UTC)):
        assert tools_config.ends("ada") == {}
        assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_every_unknown_key_is_reported_with_the_nearest_name(olga: Asking, method: str) -> None:
    answer = olga.send(method, ADDRESS, MISSPELLED)

    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["code"] == "invalid"
    assert [(error["path"], "Did you mean" in error["message"]) for error in answer.json()["errors"]] == [
        ("agents.ada.tools_config.kb__dropp", True),
        ("agents.ada.tools_config.raeding", True),
    ]
    assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("value", [1, "true", [], {}])
def test_a_value_that_is_not_a_boolean_is_refused_at_its_path(olga: Asking, value: Any) -> None:
    answer = olga.patch(ADDRESS, {"reading": value})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (
        422,
        "agents.ada.tools_config.reading",
    )


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"3"])
def test_a_body_that_is_not_an_object_is_refused(olga: Asking, body: bytes) -> None:
    assert olga.put(ADDRESS, body).status_code == 422
    assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_write_with_an_outdated_etag_is_refused(olga: Asking, method: str) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    switches.override(SETUP, "ada", "clock", False)

    answer = olga.send(method, ADDRESS, {"reading": True}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert tools_config.read("ada") == {"clock": False, "dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("tag", ["the current one", "*", 'W/"x", {}'])
def test_a_write_with_the_current_etag_is_accepted(olga: Asking, method: str, tag: str) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    sent = seen if tag.startswith("the") else tag.format(seen)
    answer = olga.send(method, ADDRESS, {"dropping": False, "reading": True}, **{"If-Match": sent})
    assert answer.status_code == 200
    assert tools_config.read("ada") == {"dropping": False, "reading": True}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_change_between_the_etag_check_and_the_write_is_detected(
    olga: Asking, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    read = tools_config.read

    def read_then_change(agent: str) -> dict[str, bool]:
        config = read(agent)
        monkeypatch.setattr(tools_config, "read", read)
        switches.override(SETUP, "ada", "kb__find", True)
        return config

    monkeypatch.setattr(tools_config, "read", read_then_change)
    answer = olga.send(method, ADDRESS, {"reading": True, "dropping": False}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert read("ada") == {"dropping": False, "kb__find": True}


def test_a_change_with_a_large_effect_requires_confirmation(olga: Asking) -> None:
    entries.change(SETUP, "agent", "ada", {"protected": True})

    unconfirmed = olga.patch(ADDRESS, {"reading": True, "clock": False})
    assert (unconfirmed.status_code, unconfirmed.json()["code"]) == (409, "confirmation-required")
    assert unconfirmed.json()["reasons"] == ["ada is protected."]
    assert unconfirmed.json()["differences"]["added"] == ["kb__find", "kb__read"]

    confirmed = olga.patch(f"{ADDRESS}?confirm=true", {"reading": True, "clock": False})
    assert confirmed.status_code == 200
    assert all(
        confirmed.json()["effect"][key] == unconfirmed.json()["differences"][key]
        # Live conversations are only counted when confirmation is required.
        for key in confirmed.json()["effect"].keys() - {"sessions", "conversations"}
    )


def test_a_change_that_exceeds_a_refusing_budget_is_refused(olga: Asking) -> None:
    entries.change(SETUP, "agent", "ada", {"budget": {"max_tools": 2, "on_exceed": "refuse"}})
    answer = olga.patch(ADDRESS, {"reading": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "The budget of ada is 2 tools" in answer.json()["detail"]


def test_an_unknown_agent_is_not_found(olga: Asking) -> None:
    answer = olga.get("/agents/adda/tools-config")
    assert (answer.status_code, answer.json()["nearest"]) == (404, ["ada"])
    assert olga.put("/agents/adda/tools-config", {}).status_code == 404


def test_a_name_with_nul_in_it_is_refused_on_every_database(olga: Asking) -> None:
    assert olga.get("/agents/a%00a/tools-config").status_code in (404, 422)
    assert olga.patch(ADDRESS, {"a\x00": True}).status_code == 422
    assert olga.patch(f"{ADDRESS}?reason=%00", {"reading": True}).status_code == 422


def test_an_unknown_query_parameter_is_refused(olga: Asking) -> None:
    answer = olga.patch(f"{ADDRESS}?confrim=true", {"reading": True})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "confrim")
    assert tools_config.read("ada") == {"dropping": False}


def test_reading_takes_two_queries_however_much_is_set(olga: Asking) -> None:
    olga.get(ADDRESS)
    with CaptureQueriesContext(connection) as few:
        olga.get(ADDRESS)
    tools_config.change(SETUP, "ada", {"reading": True, "clock": True, "kb__find": True})
    olga.get(ADDRESS)
    with CaptureQueriesContext(connection) as many:
        olga.get(ADDRESS)
    assert len(few) == len(many) == 2  # one query for the token, one for the state


@pytest.mark.parametrize("body", [{"reading": True}, {"dropping": False}, {"dropping": None}])
def test_a_responses_etag_is_of_its_own_write_and_not_of_a_later_one(
    olga: Asking, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = olga.patch(ADDRESS, body)
    assert written["ETag"] == olga.get(ADDRESS)["ETag"]
    change = tools_config.change

    def change_then_change_again(*args: Any, **options: Any) -> Any:
        result = change(*args, **options)
        switches.override(SETUP, "ada", "clock", False)
        return result

    monkeypatch.setattr(tools_config, "change", change_then_change_again)
    tag = olga.patch(ADDRESS, body)["ETag"]
    assert tag == written["ETag"]
    assert olga.put(ADDRESS, {}, **{"If-Match": tag}).status_code == 412
