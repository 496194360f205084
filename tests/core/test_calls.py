"""Calls: what the gate lets through, and what it says to the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, budgets, calls, catalog, loading, meta_tools, resolution, schema

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
) -> calls.Admission | calls.Refusal:
    resolved = budgets.resolve(building.snapshot(STORED, ada, **fields))
    return calls.admit(resolved, tool, {} if arguments is None else arguments)


def code(answer: calls.Admission | calls.Refusal) -> str:
    return answer.code if isinstance(answer, calls.Refusal) else "admitted"


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
def test_what_is_not_active_is_refused_by_its_state(tool: str, answer: str) -> None:
    assert code(admit(tool)) == answer


def test_an_active_tool_is_admitted_with_the_options_of_its_first_source() -> None:
    assert admit("web__get", {"url": "x"}, **LOADED) == calls.Admission(
        tool="web__get", options={"proxy": "p"}
    )
    assert admit("web__crawl", {}, **LOADED) == calls.Admission(tool="web__crawl", options=None)


def test_a_dormant_tool_is_refused_in_the_words_of_an_unknown_one() -> None:
    dormant, unknown = admit("clock"), admit("nothing")
    assert isinstance(dormant, calls.Refusal)
    assert isinstance(unknown, calls.Refusal)
    assert dormant.message.replace("clock", "nothing") == unknown.message


def test_a_denied_tool_can_be_refused_in_those_words_too() -> None:
    resolved = budgets.resolve(building.snapshot(STORED, ADA))
    hidden = calls.admit(resolved, "secret", {}, hide_denied=True)
    unknown = admit("nothing")
    assert isinstance(hidden, calls.Refusal)
    assert isinstance(unknown, calls.Refusal)
    assert (hidden.code, hidden.message.replace("secret", "nothing")) == (unknown.code, unknown.message)


def test_a_denial_is_told_in_general_words() -> None:
    refusal = admit("secret")
    assert isinstance(refusal, calls.Refusal)
    assert "hush" not in refusal.message
    assert "switch" not in refusal.message


@pytest.mark.parametrize(("tool", "name"), [("web__get", "net"), ("calc", "calc")])
def test_a_discoverable_tool_is_refused_with_the_way_to_get_it(tool: str, name: str) -> None:
    refusal = admit(tool)
    assert isinstance(refusal, calls.Refusal)
    assert f'load_tools with toolkit "{name}"' in refusal.message


def test_a_deferred_tool_is_refused_with_the_reason() -> None:
    ada = building.agent(budget=agents.Budget(max_tools=0, on_exceed="defer"))
    refusal = admit("clock", ada=ada)
    assert isinstance(refusal, calls.Refusal)
    assert (refusal.code, "budget" in refusal.message) == ("tool-not-active", True)


def test_arguments_that_do_not_fit_are_told_each_with_its_path() -> None:
    refusal = admit("web__get", {"url": 1}, **LOADED)
    assert isinstance(refusal, calls.Refusal)
    document = refusal.document()
    assert (document["is_error"], document["code"]) == (True, "invalid-arguments")
    assert document["errors"] == [{"path": "url", "message": "1 is not of type 'string'"}]
    assert "url: 1 is not of type 'string'" in document["message"]


@pytest.mark.parametrize(
    ("rule", "value", "kept"),
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
def test_a_refusal_of_arguments_can_be_told_without_what_they_hold(rule: Any, value: Any, kept: str) -> None:
    text = schema.canonical({"type": "object", "properties": {"password": rule}})
    violations = schema.violations(text, {"password": value})
    refusal = calls.Refusal(code="invalid-arguments", message="", errors=violations)

    assert "hunter2" in violations[0].message
    assert refusal.without_values() == f"The arguments do not fit: {kept}"


def test_a_refusal_names_a_few_places_and_says_that_there_are_more() -> None:
    violations = schema.violations('{"additionalProperties": {"type": "string"}}', dict.fromkeys("abcdef", 1))
    refusal = calls.invalid("tool", violations)

    assert refusal.message.endswith("e: 1 is not of type 'string'; and more")
    assert len(refusal.document()["errors"]) == 6


def test_a_refusal_for_a_schema_that_is_not_sound_says_so_without_values_too() -> None:
    violations = schema.violations('{"type": "object", "properties": 3}', {})
    refusal = calls.Refusal(code="invalid-arguments", message="", errors=violations)

    assert "own schema is not valid" in refusal.without_values()


def test_arguments_of_a_tool_that_is_not_active_are_not_looked_at() -> None:
    refusal = admit("web__get", {"url": 1})
    assert isinstance(refusal, calls.Refusal)
    assert (refusal.code, "errors" in refusal.document()) == ("tool-not-active", False)


def test_a_subagents_call_passes_its_own_gate() -> None:
    assert code(admit("web__crawl", {}, subagent="explore", **LOADED)) == "admitted"
    assert code(admit("web__crawl", {}, subagent="task", **LOADED)) == "tool-not-active"


def test_a_subagent_is_not_sent_to_load_what_it_cannot() -> None:
    refusal = admit("web__crawl", {}, subagent="task", **LOADED)
    assert isinstance(refusal, calls.Refusal)
    assert refusal.message.endswith(loading.NOT_FOR_SUBAGENTS)
    found = told("search_tools", {"query": "crawl"}, subagent="task")
    assert found["message"] == loading.NOT_FOR_SUBAGENTS


def meta(
    tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any
) -> calls.MetaAnswer | calls.Refusal:
    snapshot: resolution.Snapshot = building.snapshot(STORED, ada, **fields)
    return calls.meta(budgets.resolve(snapshot), snapshot, tool, {} if arguments is None else arguments)


def told(tool: str, arguments: Any = None, ada: agents.Agent = ADA, **fields: Any) -> dict[str, Any]:
    answer = meta(tool, arguments, ada, **fields)
    assert isinstance(answer, calls.MetaAnswer)
    return dict(answer.content)


@pytest.mark.parametrize("tool", list(meta_tools.DEFINITIONS))
def test_an_agent_that_can_load_nothing_has_no_meta_tools(tool: str) -> None:
    answer = meta(tool, {"toolkit": "net"}, building.agent())
    assert isinstance(answer, calls.Refusal)
    assert answer.code == "unknown-tool"


def test_a_tool_that_is_no_meta_tool_is_not_answered_as_one() -> None:
    answer = meta("clock")
    assert isinstance(answer, calls.Refusal)
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
def test_a_meta_tools_arguments_are_checked_like_any_others(tool: str, arguments: Any) -> None:
    answer = meta(tool, arguments)
    assert isinstance(answer, calls.Refusal)
    assert (answer.code, bool(answer.errors)) == ("invalid-arguments", True)


def test_a_load_answers_with_the_session_after_it_and_an_unload_takes_it_back() -> None:
    answer = meta("load_tools", {"toolkit": "net"}, request_id="r1")
    assert isinstance(answer, calls.MetaAnswer)
    assert (answer.content["status"], answer.session is not None) == ("loaded", True)
    assert told("unload_tools", {"toolkit": "net"}, session=answer.session)["status"] == "unloaded"
    assert meta("load_tools", {"toolkit": "nothing"}).session is None  # type: ignore[union-attr]
    assert told("list_toolkits")["status"] == "ok"


def test_a_search_finds_what_is_active_or_could_be_loaded_and_says_by_which_name() -> None:
    query = "fetch a page, crawl sites, do a calc, tell a secret or the clock"
    results = {result["tool"]: result for result in told("search_tools", {"query": query})["results"]}
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
    loaded = told("search_tools", {"query": "fetch a page"}, **LOADED)["results"][0]
    assert (loaded["state"], "load" in loaded) == ("active", False)


def test_a_search_gives_at_most_as_many_as_were_asked_for() -> None:
    assert len(told("search_tools", {"query": "web", "limit": 1})["results"]) == 1
    assert told("search_tools", {"query": "xylophone"})["results"] == []
