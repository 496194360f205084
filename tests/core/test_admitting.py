"""Tests of calls: which are admitted, and how others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import admitting, agents, catalog, loading, meta_tools, schema
from toolbelt.core.rules import budgets, resolution

SCHEMA = '{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}'
STORED = building.catalog_of(
    [
        building.tool("web__get", input_schema=SCHEMA, description="Fetch a page."),
        building.tool("web__crawl", description="Crawl a site."),
        building.tool("old", retired=True),
        building.tool("clock", default_on=True),
        "calc",
        "secret",
    ],
    toolkits=[
        building.toolkit("net", {"web__get": {"proxy": "p"}, "web__crawl": None}),
        building.toolkit("hush", "secret"),
    ],
    loadouts=[catalog.Loadout(name="sums", discoverable=("calc",))],
)
ADA = building.agent(allowed="net", switches={"hush": False}, loadout="sums")


def admit(
    tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any
) -> admitting.Admission | admitting.Refusal:
    resolved = budgets.resolve(building.snapshot(STORED, ada, **fields))
    return admitting.admit(resolved, tool, {} if arguments is None else arguments)


def code(answer: admitting.Admission | admitting.Refusal) -> str:
    return answer.code if isinstance(answer, admitting.Refusal) else "admitted"


LOADED: dict[str, Any] = {"session": building.session("net")}


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("nothing", "unknown-tool"),
        ("clock", "unknown-tool"),
        ("secret", "tool-denied"),
        ("old", "tool-unavailable"),
        ("calc", "tool-not-active"),
        ("web__get", "tool-not-active"),
        ("call_tool", "unknown-tool"),
    ],
)
def test_a_tool_that_is_not_active_is_refused_with_the_code_of_its_state(tool: str, answer: str) -> None:
    assert code(admit(tool)) == answer


def test_an_active_tool_is_admitted_with_its_options() -> None:
    assert admit("web__get", {"url": "x"}, **LOADED) == admitting.Admission(
        tool="web__get", options={"proxy": "p"}
    )
    assert admit("web__crawl", {}, **LOADED) == admitting.Admission(tool="web__crawl", options=None)


def test_a_dormant_tool_is_refused_like_an_unknown_tool() -> None:
    dormant, unknown = admit("clock"), admit("nothing")
    assert isinstance(dormant, admitting.Refusal)
    assert isinstance(unknown, admitting.Refusal)
    assert dormant.message.replace("clock", "nothing") == unknown.message


def test_a_denied_tool_is_refused_like_an_unknown_tool_if_denials_are_hidden() -> None:
    resolved = budgets.resolve(building.snapshot(STORED, ADA))
    hidden = admitting.admit(resolved, "secret", {}, hide_denied=True)
    unknown = admit("nothing")
    assert isinstance(hidden, admitting.Refusal)
    assert isinstance(unknown, admitting.Refusal)
    assert (hidden.code, hidden.message.replace("secret", "nothing")) == (unknown.code, unknown.message)


def test_the_message_of_a_denial_does_not_name_its_cause() -> None:
    refusal = admit("secret")
    assert isinstance(refusal, admitting.Refusal)
    assert "hush" not in refusal.message
    assert "switch" not in refusal.message


@pytest.mark.parametrize(("tool", "name"), [("web__get", "net"), ("calc", "calc")])
def test_a_discoverable_tool_is_refused_with_how_to_load_it(tool: str, name: str) -> None:
    refusal = admit(tool)
    assert isinstance(refusal, admitting.Refusal)
    assert f'load_tools with toolkit "{name}"' in refusal.message


def test_a_deferred_tool_is_refused_because_of_the_budget() -> None:
    ada = building.agent(budget=agents.Budget(max_tools=0, on_exceed="defer"))
    refusal = admit("clock", ada=ada)
    assert isinstance(refusal, admitting.Refusal)
    assert (refusal.code, "budget" in refusal.message) == ("tool-not-active", True)


def test_invalid_arguments_are_reported_with_their_paths() -> None:
    refusal = admit("web__get", {"url": 1}, **LOADED)
    assert isinstance(refusal, admitting.Refusal)
    document = refusal.document()
    assert (document["is_error"], document["code"]) == (True, "invalid-arguments")
    assert document["errors"] == [{"path": "url", "message": "1 is not of type 'string'"}]
    assert "url: 1 is not of type 'string'" in document["message"]


@pytest.mark.parametrize(
    ("rule", "value", "summary"),
    [
        ({"maxLength": 3}, "hunter2", "password: maxLength"),
        ({"type": "integer"}, "hunter2", "password: type"),
        ({"pattern": "^x"}, "hunter2", "password: pattern"),
        ({"enum": ["x"]}, "hunter2", "password: enum"),
        (False, "hunter2", "false"),
        ({"type": "object", "additionalProperties": False}, {"hunter2": 1}, "password: additionalProperties"),
        ({"anyOf": [{"type": "null"}]}, ["hunter2"], "password: anyOf"),
    ],
)
def test_a_refusal_can_be_worded_without_argument_values(rule: Any, value: Any, summary: str) -> None:
    text = schema.canonical({"type": "object", "properties": {"password": rule}})
    violations = schema.violations(text, {"password": value})
    refusal = admitting.Refusal(code="invalid-arguments", message="", errors=violations)

    assert "hunter2" in violations[0].message
    assert refusal.without_values() == f"The arguments do not fit: {summary}"


def test_a_refusal_names_the_first_violations_and_that_there_are_more() -> None:
    violations = schema.violations('{"additionalProperties": {"type": "string"}}', dict.fromkeys("abcdef", 1))
    refusal = admitting.invalid("tool", violations)

    assert refusal.message.endswith("e: 1 is not of type 'string'; and more")
    assert len(refusal.document()["errors"]) == 6


def test_a_refusal_without_values_names_an_invalid_tool_schema() -> None:
    violations = schema.violations('{"type": "object", "properties": 3}', {})
    refusal = admitting.Refusal(code="invalid-arguments", message="", errors=violations)

    assert "own schema is not valid" in refusal.without_values()


def test_arguments_of_an_inactive_tool_are_not_validated() -> None:
    refusal = admit("web__get", {"url": 1})
    assert isinstance(refusal, admitting.Refusal)
    assert (refusal.code, "errors" in refusal.document()) == ("tool-not-active", False)


def test_a_subagents_call_is_admitted_by_its_own_loadout() -> None:
    assert code(admit("web__crawl", {}, subagent="explore", **LOADED)) == "admitted"
    assert code(admit("web__crawl", {}, subagent="task", **LOADED)) == "tool-not-active"


def test_a_subagent_is_not_advised_to_load_tools() -> None:
    refusal = admit("web__crawl", {}, subagent="task", **LOADED)
    assert isinstance(refusal, admitting.Refusal)
    assert refusal.message.endswith(loading.NOT_FOR_SUBAGENTS)
    search_answer = meta_content("search_tools", {"query": "crawl"}, subagent="task")
    assert (search_answer["results"], search_answer["message"]) == ([], loading.NOT_FOR_SUBAGENTS)


def meta(
    tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any
) -> admitting.MetaAnswer | admitting.Refusal:
    snapshot: resolution.Snapshot = building.snapshot(STORED, ada, **fields)
    return admitting.meta(budgets.resolve(snapshot), snapshot, tool, {} if arguments is None else arguments)


def meta_content(tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any) -> dict[str, Any]:
    answer = meta(tool, arguments, ada, **fields)
    assert isinstance(answer, admitting.MetaAnswer)
    return dict(answer.content)


@pytest.mark.parametrize("tool", list(meta_tools.DEFINITIONS))
def test_an_agent_without_loadable_tools_has_no_meta_tools(tool: str) -> None:
    answer = meta(tool, {"toolkit": "net"}, building.agent())
    assert isinstance(answer, admitting.Refusal)
    assert answer.code == "unknown-tool"


def test_an_ordinary_tool_is_not_answered_as_a_meta_tool() -> None:
    answer = meta("clock")
    assert isinstance(answer, admitting.Refusal)
    assert answer.code == "unknown-tool"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("load_tools", {}),
        ("load_tools", {"toolkit": 1}),
        ("load_tools", {"toolkit": "net", "force": True}),
        ("unload_tools", {"name": "net"}),
        ("list_toolkits", {"all": True}),
        ("search_tools", {"query": ""}),
        ("search_tools", {"query": "x", "limit": 0}),
        ("search_tools", {"query": "x", "limit": 51}),
    ],
)
def test_the_arguments_of_meta_tools_are_validated(tool: str, arguments: Any) -> None:
    answer = meta(tool, arguments)
    assert isinstance(answer, admitting.Refusal)
    assert (answer.code, bool(answer.errors)) == ("invalid-arguments", True)


def test_load_returns_a_changed_session_and_unload_reverts_it() -> None:
    answer = meta("load_tools", {"toolkit": "net"}, request_id="r1")
    assert isinstance(answer, admitting.MetaAnswer)
    assert (answer.content["status"], answer.session is not None) == ("loaded", True)
    assert meta_content("unload_tools", {"toolkit": "net"}, session=answer.session)["status"] == "unloaded"
    assert meta("load_tools", {"toolkit": "nothing"}).session is None  # type: ignore[union-attr]
    assert meta_content("list_toolkits")["status"] == "ok"


def test_search_finds_active_and_loadable_tools_with_the_name_to_load() -> None:
    query = "fetch a page, crawl sites, do a calc, tell a secret or the clock"
    results = {result["tool"]: result for result in meta_content("search_tools", {"query": query})["results"]}
    assert set(results) == {"web__crawl", "web__get", "calc"}
    assert results["web__get"] == {
        "tool": "web__get",
        "description": "Fetch a page.",
        "toolkit": "net",
        "matched": "fetch, page",
        "state": "loadable",
        "load": "net",
    }
    assert results["calc"]["load"] == "calc"
    loaded = meta_content("search_tools", {"query": "fetch a page"}, **LOADED)["results"][0]
    assert (loaded["state"], "load" in loaded) == ("active", False)


def test_search_returns_at_most_the_requested_number_of_results() -> None:
    assert len(meta_content("search_tools", {"query": "web", "limit": 1})["results"]) == 1
    assert meta_content("search_tools", {"query": "xylophone"})["results"] == []
