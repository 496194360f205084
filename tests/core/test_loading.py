"""Loads and unloads: each status, in its order, and what the session has then."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, loading, resolution, sessions

STORED = building.catalog_of(
    ["read", "push", "clock", building.tool("old", retired=True), "mail__send", "mail__read"],
    toolkits=[
        building.toolkit("repo", "read push", description="Code."),
        building.toolkit("time", "clock"),
        building.toolkit("past", "old"),
        building.toolkit("stranger", "clock"),
    ],
    loadouts=[catalog.Loadout(name="post", discoverable=("mail",))],
)
ADA = building.agent(allowed="time repo past", initial="time")


def snapshot(ada: agents.Agent = ADA, **fields: Any) -> resolution.Snapshot:
    return building.snapshot(STORED, ada, **fields)


def status(name: str, ada: agents.Agent = ADA, **fields: Any) -> str:
    return loading.load(snapshot(ada, **fields), name).status


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("nothing", "unknown"),
        ("Repo", "unknown"),
        ("stranger", "not_allowed"),
        ("read", "not_allowed"),
        ("mail", "not_allowed"),
        ("past", "unavailable"),
        ("time", "already_loaded"),
        ("repo", "loaded"),
    ],
)
def test_a_load_has_the_first_status_that_holds(name: str, answer: str) -> None:
    assert status(name) == answer


@pytest.mark.parametrize(
    "denial",
    [{"switches": {"repo": False}}, {"overrides": {"read": False, "push": False}}],
    ids=["switch", "members"],
)
def test_a_toolkit_that_is_denied_is_denied_before_anything_else_is_asked(denial: Any) -> None:
    ada = dataclasses.replace(ADA, **denial, budget=agents.Budget(max_tools=0, on_exceed="refuse"))
    assert status("repo", ada, session=None) == "denied"
    assert status("repo", ada, session=building.session("repo")) == "denied"


def test_a_member_that_is_left_is_enough_to_load() -> None:
    assert status("repo", dataclasses.replace(ADA, overrides={"read": False})) == "loaded"


def test_a_toolkit_is_unavailable_before_it_is_over_budget_or_loaded() -> None:
    ada = dataclasses.replace(ADA, budget=agents.Budget(max_tools=0, on_exceed="refuse"))
    assert status("past", ada, session=building.session("past")) == "unavailable"


def test_without_a_session_nothing_is_loaded_and_what_is_initial_is_there_already() -> None:
    assert status("repo", session=None) == "no_session"
    assert status("time", session=None) == "already_loaded"
    assert loading.load(snapshot(session=None), "repo").session is None


def refusing(most: int) -> agents.Agent:
    return dataclasses.replace(ADA, budget=agents.Budget(max_tools=most, on_exceed="refuse"))


def test_a_refusing_budget_refuses_the_load_that_would_pass_it() -> None:
    assert [status("repo", refusing(most)) for most in (2, 3)] == ["over_budget", "loaded"]
    assert status("repo", refusing(2), session=None) == "over_budget"


def test_a_refusing_budget_that_is_passed_already_says_of_what_is_loaded_that_it_is() -> None:
    assert status("repo", refusing(1), session=building.session("repo")) == "already_loaded"


def deferring(most: int, **fields: Any) -> agents.Agent:
    return dataclasses.replace(ADA, budget=agents.Budget(max_tools=most, on_exceed="defer"), **fields)


def test_a_deferring_budget_makes_room_for_a_load_and_refuses_only_what_does_not_fit_alone() -> None:
    assert [status("repo", deferring(most)) for most in (3, 2, 1)] == [
        "loaded",
        "loaded",
        "over_budget",
    ]


def test_what_the_budget_deferred_can_be_loaded_like_anything_else() -> None:
    loaded = building.session("repo")
    assert [status("time", deferring(most), session=loaded) for most in (3, 2)] == [
        "already_loaded",
        "loaded",
    ]
    ada = deferring(2)
    after = loading.load(snapshot(ada, session=loaded), "time").session
    assert building.active(STORED, ada, session=after, request_id="r2") == ["clock"]


def test_a_load_that_makes_room_names_what_it_deferred() -> None:
    message = loading.load(snapshot(deferring(2)), "repo").message
    assert message == (
        "repo is loaded: its tools are available from the next request. To make room, the budget defers time."
    )


def test_a_toolkit_that_does_not_fit_beside_what_never_goes_is_over_budget() -> None:
    ada = deferring(1, tools=(agents.AlwaysOn(tool="read"),), allowed_toolkits=("repo",), initial_toolkits=())
    assert status("repo", ada, session=building.session("repo")) == "over_budget"


def test_a_tool_of_a_loadout_that_was_deferred_can_be_loaded_by_name_where_it_fits() -> None:
    stored = building.catalog_of(
        [building.tool("clock", default_on=True), building.tool("alarm", default_on=True)]
    )
    for most, expected in ((1, "loaded"), (0, "over_budget")):
        ada = building.agent(budget=agents.Budget(max_tools=most, on_exceed="defer"))
        assert (
            loading.load(building.snapshot(stored, ada, session=building.session()), "clock").status
            == expected
        )


def test_a_warning_budget_refuses_no_load() -> None:
    assert status("repo", dataclasses.replace(ADA, budget=agents.Budget(max_tools=0))) == "loaded"


@pytest.mark.parametrize(
    ("name", "tools"), [("mail", ["mail__read", "mail__send"]), ("mail__send", ["mail__send"])]
)
def test_a_discoverable_plugin_or_tool_is_loaded_by_name(name: str, tools: list[str]) -> None:
    ada = building.agent(loadout="post")
    outcome = loading.load(snapshot(ada, request_id="r1"), name)
    assert (outcome.status, outcome.loaded_toolkits) == ("loaded", ())
    assert building.active(STORED, ada, session=outcome.session, request_id="r1") == []
    assert building.active(STORED, ada, session=outcome.session, request_id="r2") == tools
    again = snapshot(ada, session=outcome.session, request_id="r1")
    assert loading.load(again, name).status == "already_loaded"
    assert loading.unload(again, name).status == "unloaded"


def test_a_load_keeps_its_request_and_when_it_was() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo", at="2026-01-01T00:00:00Z")
    assert outcome.session is not None
    assert outcome.session.changes == (
        sessions.Change(kind="toolkit", name="repo", on=True, request_id="r1", at="2026-01-01T00:00:00Z"),
    )


def test_an_answer_shows_what_the_next_request_will_have_in_the_allowed_order() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo")
    assert outcome.document() == {
        "status": "loaded",
        "toolkit": "repo",
        "loaded_toolkits": ["time", "repo"],
        "message": "repo is loaded: its tools are available from the next request.",
        "takes_effect": "next_request",
    }
    gone = loading.unload(snapshot(session=outcome.session, request_id="r1"), "repo")
    assert gone.document()["loaded_toolkits"] == ["time"]
    assert gone.document()["takes_effect"] == "next_request"


@pytest.mark.parametrize("name", ["nothing", "stranger", "past", "time"])
def test_an_answer_that_changes_nothing_takes_no_effect(name: str) -> None:
    outcome = loading.load(snapshot(), name)
    assert outcome.session is None
    assert sorted(outcome.document()) == ["loaded_toolkits", "message", "status", "toolkit"]


def test_an_unknown_name_is_answered_with_the_nearest_that_may_be_loaded() -> None:
    assert "Did you mean repo?" in loading.load(snapshot(), "Repo").message
    assert "mail" not in loading.load(snapshot(), "mial").message
    assert "mail" in loading.load(snapshot(building.agent(loadout="post")), "mial").message
    assert "stranger" not in loading.unload(snapshot(), "strange").message


@pytest.mark.parametrize(
    ("name", "session", "answer"),
    [
        ("nothing", building.session(), "unknown"),
        ("stranger", building.session(), "not_allowed"),
        ("stranger", None, "not_allowed"),
        ("time", building.session(), "sticky"),
        ("time", None, "sticky"),
        ("repo", None, "no_session"),
        ("repo", building.session(), "not_loaded"),
        ("repo", building.session("repo"), "unloaded"),
        ("read", building.session("repo"), "not_allowed"),
    ],
)
def test_an_unload_has_the_first_status_that_holds(
    name: str, session: sessions.Session | None, answer: str
) -> None:
    assert loading.unload(snapshot(session=session), name).status == answer


def test_what_was_denied_since_can_still_be_unloaded() -> None:
    ada = dataclasses.replace(ADA, switches={"repo": False})
    assert loading.unload(snapshot(ada, session=building.session("repo")), "repo").status == "unloaded"


HERE, THERE = {"path": "/here"}, {"path": "/there"}


def conflicting(first: Any, second: Any, **fields: Any) -> loading.Outcome:
    stored = building.catalog_of(
        "run other",
        toolkits=[
            building.toolkit("one", {"run": first}),
            building.toolkit("two", {"other": None, "run": second}),
        ],
    )
    ada = building.agent(allowed="one two", initial="one", **fields)
    return loading.load(building.snapshot(stored, ada), "two")


def test_a_conflict_refuses_the_load_and_names_the_tool_and_both_options() -> None:
    outcome = conflicting(HERE, THERE)
    document = outcome.document()
    assert (outcome.status, outcome.toolkit, outcome.session) == ("conflict", "two", None)
    assert (document["conflicting_tool"], document["loaded_toolkits"]) == ("run", ["one"])
    assert (document["existing_options"], document["candidate_options"]) == (HERE, THERE)


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [(HERE, None, "conflict"), (None, HERE, "conflict"), (HERE, dict(HERE), "loaded"), (None, {}, "loaded")],
)
def test_having_no_options_differs_from_having_some(first: Any, second: Any, answer: str) -> None:
    assert conflicting(first, second).status == answer


def test_a_tool_that_is_denied_is_in_no_conflict() -> None:
    assert conflicting(HERE, THERE, overrides={"run": False}).status == "loaded"


def test_a_tool_loaded_by_name_has_no_options_and_differs_from_one_that_has() -> None:
    stored = building.catalog_of("run", toolkits=[building.toolkit("one", {"run": HERE})])
    ada = building.agent(switches={"one": True}, loadout="minimal")
    outcome = loading.load(building.snapshot(stored, ada), "run")
    assert (outcome.status, outcome.document()["candidate_options"]) == ("conflict", {})


def test_toolkits_are_listed_in_the_allowed_order_with_what_was_loaded_by_name() -> None:
    ada = building.agent(allowed="repo ghost time", initial="time", loadout="post", overrides={"push": False})
    session = building.session(plugins="mail", tools="mail__send clock", request_id="r1")
    found = loading.list_toolkits(snapshot(ada, session=session, request_id="r1"))
    assert found == {
        "status": "ok",
        "toolkits": [
            {
                "name": "repo",
                "description": "Code.",
                "tool_names": ["read"],
                "loaded": False,
                "sticky": False,
            },
            {"name": "time", "description": "", "tool_names": ["clock"], "loaded": True, "sticky": True},
        ],
        "loaded_toolkits": ["time"],
        "loaded_by_name": ["mail", "mail__send"],
    }


def test_the_list_shows_what_the_next_request_will_find() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo")
    found = loading.list_toolkits(snapshot(session=outcome.session, request_id="r1"))
    assert found["loaded_toolkits"] == ["time", "repo"]
    assert [(kit["name"], kit["loaded"]) for kit in found["toolkits"]] == [
        ("time", True),
        ("repo", True),
        ("past", False),
    ]
