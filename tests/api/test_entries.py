"""Tests that entries can be listed, read, created, changed and removed, and that errors name every problem."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt.api import list_filters
from toolbelt.control.catalog import entries, lists
from toolbelt.control.config import belts as configuration
from toolbelt.control.reports import queries
from toolbelt.core import belts
from toolbelt.runtime import surfaces

NEW: dict[str, dict[str, Any]] = {
    "categories": {"name": "crm"},
    "plugins": {"name": "desk", "namespace": "desk", "category": "search"},
    "tools": {"key": "kb__list", "plugin": "kb", "description": "List."},
    "toolkits": {"key": "lists", "members": ["kb__find"], "policy": "List."},
    "loadouts": {"name": "day", "parent": "night", "plugins": ["kb"]},
    "agents": {"key": "eve", "kind": "plan", "budget": {"max_tools": 3}},
    "sub-apps": {"key": "chat", "tool_names": ["clock"], "agents": ["ada"]},
}
KINDS = {kind.section.replace("_", "-"): name for name, kind in belts.KINDS.items()}


def name_of(section: str) -> str:
    return str(NEW[section][entries.name_field(KINDS[section])])


@pytest.mark.parametrize("section", NEW)
def test_a_created_entry_is_stored_as_sent(olga: Asking, section: str) -> None:
    answer = olga.post(f"/{section}?reason=new", NEW[section])

    assert answer.status_code == 201
    assert answer["Location"] == f"/api/v1/{section}/{name_of(section)}"
    assert (answer.json()["before"], answer.json()["after"]) == (None, NEW[section])
    read = olga.get(f"/{section}/{name_of(section)}")
    assert (read.json(), read["ETag"]) == (NEW[section], answer["ETag"])
    assert NEW[section] in olga.get(f"/{section}").json()["items"]
    entry = queries.change(answer.json()["change"])
    assert entry is not None
    assert (entry.action, entry.actor, entry.via, entry.reason) == (
        f"{KINDS[section]}.create",
        "olga",
        "api",
        "new",
    )


@pytest.mark.parametrize("section", NEW)
def test_creating_an_existing_entry_is_refused(olga: Asking, section: str) -> None:
    olga.post(f"/{section}", NEW[section])
    again = olga.post(f"/{section}", NEW[section])
    assert (again.status_code, again.json()["code"]) == (409, "refused")
    assert "already exists" in again.json()["detail"]


@pytest.mark.parametrize("section", NEW)
def test_an_unknown_entry_is_not_found(olga: Asking, section: str) -> None:
    for answer in (olga.get(f"/{section}/nothing"), olga.get(f"/{section}/no%00thing")):
        assert answer.status_code in (404, 422)
        assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("section", [section for section in NEW if section not in ("plugins", "tools")])
def test_removing_an_entry_can_be_undone(olga: Asking, section: str) -> None:
    olga.post(f"/{section}", NEW[section])
    answer = olga.delete(f"/{section}/{name_of(section)}?reason=old")

    assert answer.status_code == 200
    assert olga.get(f"/{section}/{name_of(section)}").status_code == 404
    assert olga.delete(f"/{section}/{name_of(section)}").status_code == 404
    olga.post(f"/changes/{answer.json()['change']}/undo", {})
    assert olga.get(f"/{section}/{name_of(section)}").json() == NEW[section]


@pytest.mark.parametrize(("section", "name"), [("tools", "clock"), ("plugins", "kb")])
def test_tools_and_plugins_cannot_be_removed(olga: Asking, section: str, name: str) -> None:
    answer = olga.delete(f"/{section}/{name}")
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")


def test_an_entry_in_use_cannot_be_removed(olga: Asking) -> None:
    answer = olga.delete("/toolkits/reading")
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "used by the agent ada" in answer.json()["detail"]


def test_a_change_only_affects_the_given_fields(olga: Asking) -> None:
    answer = olga.patch(
        "/toolkits/reading", {"changes": {"title": "Books", "triggers": None}, "reason": "why"}
    )

    assert answer.status_code == 200
    assert answer.json()["before"].keys() == {"title", "triggers"}
    assert answer.json()["after"] == {"title": "Books", "triggers": None}
    read = olga.get("/toolkits/reading")
    assert read["ETag"] == answer["ETag"]
    assert read.json()["title"] == "Books"
    assert "triggers" not in read.json()
    assert read.json()["members"] == ["kb__find", "kb__read"]


def test_a_tool_of_no_plugin_is_retired_and_restored_by_changing_it(olga: Asking) -> None:
    assert olga.post("/tools", {"key": "own"}).status_code == 201
    assert olga.patch("/tools/own", {"changes": {"retired": True}}).status_code == 200
    assert olga.get("/tools/own").json()["retired"] is True
    assert olga.patch("/tools/own", {"changes": {"retired": False}}).status_code == 200
    assert "retired" not in olga.get("/tools/own").json()


def test_only_its_plugin_retires_a_tool_of_a_plugin(olga: Asking) -> None:
    refused = olga.patch("/tools/clock", {"changes": {"retired": True}})
    assert refused.status_code == 422
    assert "Block a tool, or turn a plugin off, instead." in refused.content.decode()


def test_changing_an_agent_returns_the_effect_on_the_model(olga: Asking) -> None:
    answer = olga.patch("/agents/ada", {"changes": {"tools": ["clock", "kb__find"]}})
    assert answer.json()["effect"]["added"] == ["kb__find"]
    assert answer.json()["effect"]["tools"] == [1, 2]


def test_a_shared_entry_that_exceeds_an_agents_budget_is_refused(olga: Asking) -> None:
    budget = {"max_tools": len(surfaces.ask("ada").because), "on_exceed": "refuse"}
    entries.change(SETUP.replace(confirm=True), "agent", "ada", {"budget": budget})
    answer = olga.post("/sub-apps", NEW["sub-apps"] | {"tool_names": ["kb__find"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert "The budget of ada is 1 tool; this change would result in 2 tools" in answer.json()["detail"]


def test_a_change_based_on_an_outdated_value_returns_the_current_value(olga: Asking) -> None:
    entries.change(SETUP, "toolkit", "reading", {"title": "Books"})
    answer = olga.patch("/toolkits/reading", {"changes": {"title": "Texts"}, "was": {"title": "Reading"}})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert (answer.json()["was"], answer.json()["now"]) == ("Reading", "Books")
    # A change to another field by another operator is not a conflict.
    other = olga.patch("/toolkits/reading", {"changes": {"policy": "Read."}, "was": {"triggers": []}})
    assert other.status_code == 409
    assert olga.patch("/toolkits/reading", {"changes": {"policy": "Read."}, "was": {}}).status_code == 200


def test_changing_or_removing_with_an_outdated_etag_is_refused(olga: Asking) -> None:
    olga.post("/sub-apps", NEW["sub-apps"])
    seen = olga.get("/sub-apps/chat")["ETag"]
    entries.change(SETUP, "sub_app", "chat", {"title": "Chat"})

    for answer in (
        olga.patch("/sub-apps/chat", {"changes": {"description": "x"}}, **{"If-Match": seen}),
        olga.delete("/sub-apps/chat", **{"If-Match": seen}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert olga.get("/sub-apps/chat").json() == {**NEW["sub-apps"], "title": "Chat"}

    for invalid in ("abc", "", '"x', "deadbeef, cafe"):
        answer = olga.patch("/sub-apps/chat", {"changes": {"description": "x"}}, **{"If-Match": invalid})
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")

    seen = olga.get("/sub-apps/chat")["ETag"]
    changed = olga.patch("/sub-apps/chat", {"changes": {"description": "x"}}, **{"If-Match": seen})
    assert changed.status_code == 200
    assert olga.delete("/sub-apps/chat", **{"If-Match": changed["ETag"]}).status_code == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_between_the_etag_check_and_the_write_is_detected(
    olga: Asking, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = olga.get("/agents/bob")["ETag"]
    read = entries.read

    def read_then_change(kind: str, name: str) -> dict[str, Any]:
        entry = read(kind, name)
        monkeypatch.setattr(entries, "read", read)
        entries.change(SETUP, "agent", "bob", {"title": "Bob"})
        return entry

    monkeypatch.setattr(entries, "read", read_then_change)
    body = {"changes": {"role": "x"}} if method == "PATCH" else None
    answer = olga.send(method, "/agents/bob", body, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert read("agent", "bob") == {"key": "bob", "title": "Bob", "tools_config": {"reading": True}}


def test_every_problem_of_an_entry_is_reported_with_its_path(olga: Asking) -> None:
    answer = olga.post(
        "/agents",
        {"key": "eve", "tools": ["clok"], "tools_config": {"raeding": 1}, "colour": "red", "kind": "plam"},
    )
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [
        "agents.eve.tools[0]",
        "agents.eve.tools_config.raeding",
        "agents.eve.tools_config.raeding",
        "agents.eve.colour",
        "agents.eve.kind",
    ]
    assert olga.get("/agents/eve").status_code == 404


@pytest.mark.parametrize(
    "body", [{}, {"key": ""}, {"key": 3}, {"key": "a\x00"}, {"key": "a b"}, {"name": "x"}]
)
def test_an_entry_with_an_invalid_name_is_refused(olga: Asking, body: dict[str, Any]) -> None:
    answer = olga.post("/agents", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_the_key_of_an_entry_cannot_be_changed(olga: Asking) -> None:
    answer = olga.patch("/agents/ada", {"changes": {"key": "eve"}})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "agents.ada.key")
    assert olga.get("/agents/eve").status_code == 404
    assert olga.patch("/agents/ada", {"changes": {"key": "ada"}}).json()["change"] is None


def test_a_toolkit_in_code_can_be_blocked_but_not_edited(olga: Asking) -> None:
    code = SETUP.observed_by("kb", "program")
    entries.put(code, "toolkit", {"key": "coded", "plugin": "kb", "members": ["kb__find"]})
    answer = olga.patch("/toolkits/coded", {"changes": {"policy": "Mine."}})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "toolkits.coded.policy")
    assert olga.patch("/toolkits/coded", {"changes": {"blocked": True}}).status_code == 200


def test_entries_require_the_same_permissions_as_in_the_admin(stored: None) -> None:
    mia = Asking(of_operator("mia", "view_loadout", "add_loadout", "change_toolkit"))

    assert mia.get("/loadouts").status_code == 200
    assert mia.post("/loadouts", NEW["loadouts"]).status_code == 201
    assert mia.patch("/loadouts/day", {"changes": {"description": "x"}}).status_code == 403
    assert mia.delete("/loadouts/day").status_code == 403
    # A role that may change an entry may read it; every operator may read what the dashboard shows.
    assert [mia.get(f"/{section}").status_code for section in NEW] == [403, 403, 200, 200, 200, 200, 200]
    assert "toolbelt.view_plugin" in mia.get("/plugins").json()["detail"]


def test_a_read_only_token_cannot_change_entries(reader: Asking) -> None:
    assert reader.get("/agents/ada").status_code == 200
    assert reader.patch("/agents/ada", {"changes": {"title": "x"}}).status_code == 403


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/tools?plugin=kb", ["kb__drop", "kb__find", "kb__read"]),
        ("/tools?category=search", ["kb__drop", "kb__find", "kb__read"]),
        ("/tools?toolkit=reading&q=look", []),
        ("/tools?toolkit=reading&q=FIND", ["kb__find"]),
        ("/tools?retired=true", []),
        ("/tools?plugin=base", ["clock", "hidden"]),
        ("/tools?plugin=", []),
        ("/toolkits?tool=kb__drop", ["dropping"]),
        ("/toolkits?q=looks", ["reading"]),
        ("/plugins?active=true&status=ready", ["kb", "base"]),
        ("/plugins?blocked=true", []),
        ("/loadouts?parent=minimal", []),
        ("/agents?protected=false", ["ada", "bob"]),
        ("/agents?loadout=full", []),
        ("/sub-apps?agent=ada", []),
        ("/categories?q=x", []),
    ],
)
def test_a_list_can_be_filtered(olga: Asking, address: str, expected: list[str]) -> None:
    answer = olga.get(address)
    assert answer.status_code == 200
    assert [entry.get("key", entry.get("name")) for entry in answer.json()["items"]] == expected
    assert answer.json()["total"] == len(expected)


def test_a_list_is_paged_in_stored_order(olga: Asking) -> None:
    keys: list[str] = []
    address: str | None = "/tools?plugin=kb&limit=2"
    totals = set()
    while address:
        page = olga.get(address).json()
        keys += [entry["key"] for entry in page["items"]]
        totals.add(page["total"])
        address = page["next"] and page["next"].removeprefix("/api/v1")
    assert (keys, totals) == (["kb__drop", "kb__find", "kb__read"], {3})


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "offset=-1", "blocked=maybe", "plugn=kb", "q=%00"])
def test_an_invalid_parameter_is_refused_with_its_name(olga: Asking, query: str) -> None:
    answer = olga.get(f"/tools?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, query.partition("=")[0])


@pytest.mark.parametrize("section", NEW)
def test_listing_takes_a_constant_number_of_queries(olga: Asking, section: str) -> None:
    def count() -> int:
        olga.get(f"/{section}")
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(f"/{section}").status_code == 200
        return len(captured)

    few = count()
    configuration.import_(
        SETUP,
        {
            "plugins": [{"name": f"p{number}"} for number in range(9)],
            "tools": [{"key": f"t{number}"} for number in range(9)],
            "toolkits": [{"key": f"k{number}", "members": ["t1", "t2"]} for number in range(9)],
            "loadouts": [{"name": f"l{number}"} for number in range(9)],
            "agents": [{"key": f"a{number}", "tools_config": {"t1": True}} for number in range(9)],
            "sub_apps": [{"key": f"s{number}", "tool_names": ["t1"]} for number in range(9)],
        },
    )
    assert count() == few <= 9


def test_the_query_parameters_of_lists_match_the_supported_filters() -> None:
    common = set(list_filters.ListQuery.model_fields)
    for kind, query in list_filters.BY_KIND.items():
        assert set(query.model_fields) - common == set(lists.TRAITS[kind])
