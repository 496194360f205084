"""Tests that call_tool admits the right calls with the right options, and that MCP tool lists are right."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from tests.core.test_admitting import ADA, STORED
from toolbelt.core import admitting, agents, catalog, dispatch, surface, tool_lists
from toolbelt.core.rules import budgets, resolution


def resolved(ada: agents.Agent = ADA, **fields: Any) -> tuple[budgets.Resolution, resolution.Snapshot]:
    snapshot = building.snapshot(STORED, ada, **fields)
    return budgets.resolve(snapshot), snapshot


def admit(
    tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any
) -> admitting.Admission | admitting.Refusal:
    return dispatch.admit(*resolved(ada, **fields), tool, {} if arguments is None else arguments)


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        ("nothing", "unknown-tool"),
        ("clock", "unknown-tool"),
        ("secret", "tool-denied"),
        ("old", "tool-unavailable"),
    ],
)
def test_a_tool_that_cannot_be_loaded_is_refused(tool: str, code: str):
    answer = admit(tool)
    assert isinstance(answer, admitting.Refusal)
    assert answer.code == code


@pytest.mark.parametrize("fields", [{}, {"session": building.session()}])
def test_a_loadable_tool_is_admitted_with_the_options_of_loading_it(fields: dict[str, Any]):
    assert admit("web__get", {"url": "/"}, **fields) == admitting.Admission(
        tool="web__get", options={"proxy": "p"}
    )
    assert admit("calc", **fields) == admitting.Admission(tool="calc")


def test_a_deferred_tool_is_admitted():
    ada = dataclasses.replace(
        building.agent(allowed="net", initial="net"), budget=agents.Budget(max_tools=0, on_exceed="defer")
    )
    assert admit("web__get", {"url": "/"}, ada) == admitting.Admission(
        tool="web__get", options={"proxy": "p"}
    )


def test_an_active_tool_is_admitted_with_its_options():
    session = building.session("net")
    assert admit("web__get", {"url": "/"}, session=session).options == {"proxy": "p"}


def test_arguments_are_validated_against_the_schema_of_the_named_tool():
    answer = admit("web__get", {"url": 7})
    assert isinstance(answer, admitting.Refusal)
    assert (answer.code, answer.errors[0].path) == ("invalid-arguments", "url")


def test_an_agent_without_loadable_tools_has_no_call_tool():
    bare, _ = resolved(building.agent())
    for answer in (dispatch.parse_call(bare, {"tool": "clock"}), dispatch.search_tools(bare, {"query": "x"})):
        assert isinstance(answer, admitting.Refusal)
        assert answer.code == "unknown-tool"


@pytest.mark.parametrize(
    ("fields", "load"),
    [
        ({"session": None}, None),
        ({}, "net"),
        ({"ada": dataclasses.replace(ADA, budget=agents.Budget(max_tools=0, on_exceed="refuse"))}, None),
        ({"subagent": "task"}, None),
    ],
)
def test_search_results_name_what_to_load_only_where_a_load_would_succeed(
    fields: dict[str, Any], load: str | None
):
    answer = dispatch.search_tools(resolved(**fields)[0], {"query": "fetch a page"})
    assert isinstance(answer, admitting.MetaAnswer)
    (hit,) = [hit for hit in answer.content["results"] if hit["tool"] == "web__get"] or [{}]
    assert hit.get("load") == load
    assert ("'load'" in answer.content["message"]) is (load is not None)


@pytest.mark.parametrize("fields", [{"session": None}, {}])
def test_call_tool_is_listed_while_something_could_be_called_or_loaded(fields: dict[str, Any]):
    def names(ada: agents.Agent, **more: Any) -> list[str]:
        built = surface.build(building.snapshot(STORED, ada, **fields, **more))
        return [definition.name for definition in tool_lists.of(built, "dispatch").tools]

    full = dataclasses.replace(ADA, budget=agents.Budget(max_tools=0, on_exceed="refuse"))
    for ada in (ADA, full):
        assert {"call_tool", "search_tools"} <= {*names(ada)}
    for ada in (
        building.agent(),
        building.agent(allowed="net", initial="net"),
        building.agent(allowed="hush", switches={"hush": False}),
    ):
        assert "call_tool" not in names(ada)


@pytest.mark.parametrize(
    ("loading", "has_session", "may_grow", "form"),
    [
        ("dispatch", True, True, "dispatch"),
        ("list", True, True, "list"),
        ("list", False, True, "dispatch"),
        ("list", True, False, "dispatch"),
        ("constant", False, True, "start"),
        ("constant", True, False, "constant"),
    ],
)
def test_a_growing_list_requires_list_loading_a_session_and_permission(
    loading: Any, has_session: bool, may_grow: bool, form: str
):
    assert tool_lists.form(loading, has_session=has_session, may_grow=may_grow) == form


def test_equal_lists_have_equal_digests():
    def digest(form: tool_lists.Form, ada: agents.Agent = ADA, **fields: Any) -> str:
        return tool_lists.of(surface.build(building.snapshot(STORED, ada, **fields)), form).digest

    assert digest("dispatch") == digest("dispatch", request_id="r7")
    assert digest("dispatch") == digest("dispatch", building.agent(allowed="net", loadout="sums"))
    assert digest("dispatch") != digest("list")
    assert digest("list") != digest("list", session=building.session("net"))


def test_tools_that_the_agents_program_runs_are_not_listed_or_found():
    stored = building.catalog_of(
        [
            building.tool("shop__refund", description="Refund."),
            building.tool("bank__refund", description="Refund."),
        ],
        plugins=[catalog.Plugin(name="shop")],
        toolkits={"money": "shop__refund bank__refund"},
    )
    loaded = building.snapshot(stored, building.agent(tools="shop__refund bank__refund"))
    for form in ("dispatch", "list"):
        listed = tool_lists.of(surface.build(loaded), form)
        assert [definition.name for definition in listed.tools] == ["bank__refund"]
    answer = dispatch.search_tools(
        budgets.resolve(building.snapshot(stored, building.agent(allowed="money"))), {"query": "refund"}
    )
    assert isinstance(answer, admitting.MetaAnswer)
    assert [hit["tool"] for hit in answer.content["results"]] == ["bank__refund"]
