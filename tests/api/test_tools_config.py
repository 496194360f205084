"""The flat tools_config is read and written as a whole or in part, compared, all or nothing."""

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
MISSPELT = {"kb__dropp": True, "dropping": None, "raeding": False}


def test_it_is_read_as_a_flat_mapping_with_a_tag(olga: Asking) -> None:
    answer = olga.get(ADDRESS)
    assert (answer.status_code, answer.json()) == (200, {"dropping": False})

    again = olga.get(ADDRESS, **{"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])


def test_what_a_patch_names_is_set_and_the_rest_stays(olga: Asking) -> None:
    answer = olga.patch(f"{ADDRESS}?reason=night", {"reading": True, "clock": False})

    told = answer.json()
    assert answer.status_code == 200
    assert told["before"] == {"reading": None, "clock": None}
    assert told["after"] == {"reading": True, "clock": False}
    assert told["effect"]["tools"] == [1, 2]
    assert told["effect"]["tokens"][1] > told["effect"]["tokens"][0]
    assert (told["effect"]["added"], told["effect"]["removed"]) == (["kb__find", "kb__read"], ["clock"])
    assert told["effect"]["policy"] == [["reading", "none", "on"]]
    assert tools_config.read("ada") == {"clock": False, "dropping": False, "reading": True}
    assert answer["ETag"] == olga.get(ADDRESS)["ETag"]
    newest = queries.changes(agent="ada", size=2).entries
    assert [(one.actor, one.via, one.reason) for one in newest] == [("olga", "api", "night")] * 2
    assert newest[0].id == told["change"]
    assert newest[0].batch is not None
    assert newest[0].batch == newest[1].batch


def test_a_null_clears(olga: Asking) -> None:
    assert olga.patch(ADDRESS, {"dropping": None}).json()["after"] == {"dropping": None}
    assert tools_config.read("ada") == {}


def test_a_put_leaves_nothing_that_it_does_not_name(olga: Asking) -> None:
    assert olga.put(ADDRESS, {"reading": True}).status_code == 200
    assert olga.get(ADDRESS).json() == {"reading": True}


def test_a_configuration_that_was_read_can_be_written_back_and_changes_nothing(olga: Asking) -> None:
    read = olga.get(ADDRESS).json()
    answer = olga.put(ADDRESS, read).json()
    assert [answer[key] for key in ("change", "before", "after", "effect")] == [None, {}, {}, None]


def test_ends_stand_beside_it_and_it_stays_a_mapping_of_booleans(olga: Asking) -> None:
    olga.put("/agents/ada/switches/reading", {"on": True, "ends": "2099-01-02T03:04:05Z"})
    read = olga.get(ADDRESS)
    assert read.json() == {"dropping": False, "reading": True}

    ends = olga.get(f"{ADDRESS}/ends")
    assert ends.json() == {"reading": {"at": "2099-01-02T03:04:05Z", "then": None, "by": "olga"}}
    assert olga.get(f"{ADDRESS}/ends", **{"If-None-Match": ends["ETag"]}).status_code == 304
    # What is written back as it was read leaves every end where it is; what is set otherwise stands for good.
    assert olga.put(ADDRESS, read.json()).json()["change"] is None
    assert olga.patch(ADDRESS, {"dropping": None}).status_code == 200
    assert olga.get(f"{ADDRESS}/ends").json() == ends.json()
    olga.patch(ADDRESS, {"reading": False})
    assert olga.get(f"{ADDRESS}/ends").json() == {}


def test_what_is_over_has_no_end_any_more(olga: Asking) -> None:
    olga.put("/agents/ada/switches/reading", {"on": True, "ends": "2099-01-02T03:04:05Z"})
    with clock.stopped(dt.datetime(2099, 1, 2, 3, 4, 5, tzinfo=dt.UTC)):
        assert tools_config.ends("ada") == {}
        assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_every_key_that_names_nothing_is_told_at_once_with_its_nearest(olga: Asking, method: str) -> None:
    answer = olga.send(method, ADDRESS, MISSPELT)

    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["code"] == "invalid"
    assert [(one["path"], "Did you mean" in one["message"]) for one in answer.json()["errors"]] == [
        ("agents.ada.tools_config.kb__dropp", True),
        ("agents.ada.tools_config.raeding", True),
    ]
    assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("value", [1, "true", [], {}])
def test_a_value_that_is_no_answer_is_refused_at_its_path(olga: Asking, value: Any) -> None:
    answer = olga.patch(ADDRESS, {"reading": value})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (
        422,
        "agents.ada.tools_config.reading",
    )


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"3"])
def test_a_body_that_is_no_object_is_refused(olga: Asking, body: bytes) -> None:
    assert olga.put(ADDRESS, body).status_code == 422
    assert tools_config.read("ada") == {"dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_whoever_saw_another_state_changes_nothing(olga: Asking, method: str) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    switches.override(SETUP, "ada", "clock", False)

    answer = olga.send(method, ADDRESS, {"reading": True}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert tools_config.read("ada") == {"clock": False, "dropping": False}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("tag", ["the one that was seen", "*", 'W/"x", {}'])
def test_whoever_saw_this_state_changes_it(olga: Asking, method: str, tag: str) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    sent = seen if tag.startswith("the") else tag.format(seen)
    answer = olga.send(method, ADDRESS, {"dropping": False, "reading": True}, **{"If-Match": sent})
    assert answer.status_code == 200
    assert tools_config.read("ada") == {"dropping": False, "reading": True}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_one_who_comes_between_the_look_and_the_change_is_noticed(
    olga: Asking, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = olga.get(ADDRESS)["ETag"]
    read = tools_config.read

    def read_and_be_overtaken(agent: str) -> dict[str, bool]:
        found = read(agent)
        monkeypatch.setattr(tools_config, "read", read)
        switches.override(SETUP, "ada", "kb__find", True)
        return found

    monkeypatch.setattr(tools_config, "read", read_and_be_overtaken)
    answer = olga.send(method, ADDRESS, {"reading": True, "dropping": False}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert read("ada") == {"dropping": False, "kb__find": True}


def test_a_far_reaching_one_is_done_once_it_is_confirmed(olga: Asking) -> None:
    entries.change(SETUP, "agent", "ada", {"protected": True})

    asked = olga.patch(ADDRESS, {"reading": True, "clock": False})
    assert (asked.status_code, asked.json()["code"]) == (409, "confirmation-required")
    assert asked.json()["reasons"] == ["ada is protected."]
    assert asked.json()["differences"]["added"] == ["kb__find", "kb__read"]

    done = olga.patch(f"{ADDRESS}?confirm=true", {"reading": True, "clock": False})
    assert done.status_code == 200
    assert all(
        done.json()["effect"][key] == asked.json()["differences"][key]
        # Live sessions are only counted for a question.
        for key in done.json()["effect"].keys() - {"sessions"}
    )


def test_a_budget_that_refuses_is_not_passed(olga: Asking) -> None:
    entries.change(SETUP, "agent", "ada", {"budget": {"max_tools": 2, "on_exceed": "refuse"}})
    answer = olga.patch(ADDRESS, {"reading": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "The budget of ada is 2 tools" in answer.json()["detail"]


def test_an_agent_that_is_not_there_is_not_found(olga: Asking) -> None:
    answer = olga.get("/agents/adda/tools-config")
    assert (answer.status_code, answer.json()["nearest"]) == (404, ["ada"])
    assert olga.put("/agents/adda/tools-config", {}).status_code == 404


def test_a_name_with_nul_in_it_is_refused_on_every_database(olga: Asking) -> None:
    assert olga.get("/agents/a%00a/tools-config").status_code in (404, 422)
    assert olga.patch(ADDRESS, {"a\x00": True}).status_code == 422
    assert olga.patch(f"{ADDRESS}?reason=%00", {"reading": True}).status_code == 422


def test_an_unknown_word_in_the_address_is_refused(olga: Asking) -> None:
    answer = olga.patch(f"{ADDRESS}?confrim=true", {"reading": True})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "confrim")
    assert tools_config.read("ada") == {"dropping": False}


def test_reading_it_costs_the_same_however_much_is_set(olga: Asking) -> None:
    olga.get(ADDRESS)
    with CaptureQueriesContext(connection) as few:
        olga.get(ADDRESS)
    tools_config.change(SETUP, "ada", {"reading": True, "clock": True, "kb__find": True})
    olga.get(ADDRESS)
    with CaptureQueriesContext(connection) as many:
        olga.get(ADDRESS)
    assert len(few) == len(many) == 2  # whose token it is, and which state this is


@pytest.mark.parametrize("body", [{"reading": True}, {"dropping": False}, {"dropping": None}])
def test_the_tag_of_an_answer_is_of_what_was_written_and_not_of_what_came_after(
    olga: Asking, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = olga.patch(ADDRESS, body)
    assert written["ETag"] == olga.get(ADDRESS)["ETag"]
    change = tools_config.change

    def change_and_be_followed(*args: Any, **options: Any) -> Any:
        done = change(*args, **options)
        switches.override(SETUP, "ada", "clock", False)
        return done

    monkeypatch.setattr(tools_config, "change", change_and_be_followed)
    tag = olga.patch(ADDRESS, body)["ETag"]
    assert tag == written["ETag"]
    assert olga.put(ADDRESS, {}, **{"If-Match": tag}).status_code == 412
