"""Tests of loads and unloads: each status, their precedence, and the resulting session."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, loading, sessions
from toolbelt.core.rules import resolution

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
def test_a_load_returns_the_first_status_that_applies(name: str, answer: str) -> None:
    assert status(name) == answer


@pytest.mark.parametrize(
    "denial",
    [{"switches": {"repo": False}}, {"overrides": {"read": False, "push": False}}],
    ids=["switch", "members"],
)
def test_denied_takes_precedence_over_every_other_status(denial: Any) -> None:
    ada = dataclasses.replace(ADA, **denial, budget=agents.Budget(max_tools=0, on_exceed="refuse"))
    assert status("repo", ada, session=None) == "denied"
    assert status("repo", ada, session=building.session("repo")) == "denied"


def test_a_toolkit_with_one_permitted_member_can_be_loaded() -> None:
    assert status("repo", dataclasses.replace(ADA, overrides={"read": False})) == "loaded"


def test_unavailable_takes_precedence_over_over_budget_and_loaded() -> None:
    ada = dataclasses.replace(ADA, budget=agents.Budget(max_tools=0, on_exceed="refuse"))
    assert status("past", ada, session=building.session("past")) == "unavailable"


def test_without_a_session_only_initial_toolkits_count_as_loaded() -> None:
    assert status("repo", session=None) == "no_session"
    assert status("time", session=None) == "already_loaded"
    assert loading.load(snapshot(session=None), "repo").session is None


def refusing(most: int) -> agents.Agent:
    return dataclasses.replace(ADA, budget=agents.Budget(max_tools=most, on_exceed="refuse"))


def test_a_refusing_budget_refuses_a_load_that_would_exceed_it() -> None:
    assert [status("repo", refusing(most)) for most in (2, 3)] == ["over_budget", "loaded"]
    assert status("repo", refusing(2), session=None) == "over_budget"


def test_an_exceeded_refusing_budget_still_reports_a_toolkit_as_already_loaded() -> None:
    assert status("repo", refusing(1), session=building.session("repo")) == "already_loaded"


def deferring(most: int, **fields: Any) -> agents.Agent:
    return dataclasses.replace(ADA, budget=agents.Budget(max_tools=most, on_exceed="defer"), **fields)


def test_a_deferring_budget_refuses_only_a_load_that_does_not_fit_alone() -> None:
    assert [status("repo", deferring(most)) for most in (3, 2, 1)] == [
        "loaded",
        "loaded",
        "over_budget",
    ]


def test_a_deferred_toolkit_can_be_loaded() -> None:
    loaded = building.session("repo")
    assert [status("time", deferring(most), session=loaded) for most in (3, 2)] == [
        "already_loaded",
        "loaded",
    ]
    ada = deferring(2)
    after = loading.load(snapshot(ada, session=loaded), "time").session
    assert building.active(STORED, ada, session=after, request_id="r2") == ["clock"]


def test_a_load_names_the_toolkits_that_the_budget_defers_for_it() -> None:
    message = loading.load(snapshot(deferring(2)), "repo").message
    assert message == (
        "repo is loaded: its tools are available from the next request. To make room, the budget defers time."
    )


def test_a_toolkit_that_does_not_fit_beside_always_on_tools_is_over_budget() -> None:
    ada = deferring(1, tools=(agents.AlwaysOn(tool="read"),), allowed_toolkits=("repo",), initial_toolkits=())
    assert status("repo", ada, session=building.session("repo")) == "over_budget"


def test_a_deferred_default_tool_can_be_loaded_by_name_if_it_fits() -> None:
    stored = building.catalog_of(
        [building.tool("clock", default_on=True), building.tool("alarm", default_on=True)]
    )
    for most, expected in ((1, "loaded"), (0, "over_budget")):
        ada = building.agent(budget=agents.Budget(max_tools=most, on_exceed="defer"))
        assert (
            loading.load(building.snapshot(stored, ada, session=building.session()), "clock").status
            == expected
        )


def test_a_warning_budget_does_not_refuse_a_load() -> None:
    assert status("repo", dataclasses.replace(ADA, budget=agents.Budget(max_tools=0))) == "loaded"


@pytest.mark.parametrize(
    ("name", "tools"), [("mail", ["mail__read", "mail__send"]), ("mail__send", ["mail__send"])]
)
def test_a_discoverable_plugin_or_tool_can_be_loaded_by_name(name: str, tools: list[str]) -> None:
    ada = building.agent(loadout="post")
    outcome = loading.load(snapshot(ada, request_id="r1"), name)
    assert (outcome.status, outcome.loaded_toolkits) == ("loaded", ())
    assert building.active(STORED, ada, session=outcome.session, request_id="r1") == []
    assert building.active(STORED, ada, session=outcome.session, request_id="r2") == tools
    again = snapshot(ada, session=outcome.session, request_id="r1")
    assert loading.load(again, name).status == "already_loaded"
    assert loading.unload(again, name).status == "unloaded"


def test_a_load_records_its_request_and_time() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo", at="2026-01-01T00:00:00Z")
    assert outcome.session is not None
    assert outcome.session.changes == (
        sessions.Change(kind="toolkit", name="repo", on=True, request_id="r1", at="2026-01-01T00:00:00Z"),
    )


def test_an_answer_lists_the_toolkits_of_the_next_request_in_allowed_order() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo")
    assert outcome.document() == {
        "status": "loaded",
        "toolkit": "repo",
        "loaded_toolkits": ["time", "repo"],
        "message": "repo is loaded: its tools are available from the next request.",
        "takes_effect": "next_request",
    }
    after_unload = loading.unload(snapshot(session=outcome.session, request_id="r1"), "repo")
    assert after_unload.document()["loaded_toolkits"] == ["time"]
    assert after_unload.document()["takes_effect"] == "next_request"


@pytest.mark.parametrize("name", ["nothing", "stranger", "past", "time"])
def test_an_answer_without_a_change_omits_when_it_takes_effect(name: str) -> None:
    outcome = loading.load(snapshot(), name)
    assert outcome.session is None
    assert sorted(outcome.document()) == ["loaded_toolkits", "message", "status", "toolkit"]


def test_an_unknown_name_is_answered_with_the_closest_loadable_name() -> None:
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
def test_an_unload_returns_the_first_status_that_applies(
    name: str, session: sessions.Session | None, answer: str
) -> None:
    assert loading.unload(snapshot(session=session), name).status == answer


def test_a_toolkit_denied_after_loading_can_still_be_unloaded() -> None:
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


def test_a_conflicting_load_is_refused_with_the_tool_and_the_names_of_both_options() -> None:
    outcome = conflicting(HERE, THERE)
    document = outcome.document()
    assert (outcome.status, outcome.toolkit, outcome.session) == ("conflict", "two", None)
    assert (document["conflicting_tool"], document["loaded_toolkits"]) == ("run", ["one"])
    assert document["existing_options"] == document["candidate_options"] == {"path": "[withheld]"}
    assert not any(value in str(document) for value in (*HERE.values(), *THERE.values()))


@pytest.mark.parametrize(
    ("first", "second", "answer"),
    [(HERE, None, "conflict"), (None, HERE, "conflict"), (HERE, dict(HERE), "loaded"), (None, {}, "loaded")],
)
def test_absent_and_present_options_conflict(first: Any, second: Any, answer: str) -> None:
    assert conflicting(first, second).status == answer


def test_a_denied_tool_does_not_conflict() -> None:
    assert conflicting(HERE, THERE, overrides={"run": False}).status == "loaded"


def test_a_tool_loaded_by_name_conflicts_with_a_source_that_has_options() -> None:
    stored = building.catalog_of("run", toolkits=[building.toolkit("one", {"run": HERE})])
    ada = building.agent(switches={"one": True}, loadout="minimal")
    outcome = loading.load(building.snapshot(stored, ada), "run")
    assert (outcome.status, outcome.document()["candidate_options"]) == ("conflict", {})


def test_toolkits_are_listed_in_allowed_order_with_names_loaded_directly() -> None:
    ada = building.agent(allowed="repo ghost time", initial="time", loadout="post", overrides={"push": False})
    session = building.session(plugins="mail", tools="mail__send clock", request_id="r1")
    listing = loading.list_toolkits(snapshot(ada, session=session, request_id="r1"))
    assert listing == {
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


def test_the_list_of_toolkits_shows_the_state_of_the_next_request() -> None:
    outcome = loading.load(snapshot(request_id="r1"), "repo")
    listing = loading.list_toolkits(snapshot(session=outcome.session, request_id="r1"))
    assert listing["loaded_toolkits"] == ["time", "repo"]
    assert [(kit["name"], kit["loaded"]) for kit in listing["toolkits"]] == [
        ("time", True),
        ("repo", True),
    ]
    assert listing["message"] == "1 more toolkit is left out. It cannot be loaded now."
