"""Tests that belts are read and written."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import agents, belts, catalog, errors, schema


def _agent(entry: dict[str, Any], **sections: Any) -> agents.Agent:
    document = {
        "tools": [{"key": "run"}, {"key": "think"}],
        "toolkits": [{"key": "dev", "members": ["run"]}, {"key": "mind", "members": ["think"]}],
        **sections,
        "agents": [{"key": "ada", **entry}],
    }
    return belts.load(document).agents["ada"]


def test_an_empty_belt_loads_and_dumps_as_an_empty_document() -> None:
    belt = belts.load({})
    assert belts.dump(belt) == {}
    assert belts.load({"tools": None, "agents": []}).catalog.tools == {}


def test_tools_config_is_split_into_switches_and_overrides() -> None:
    agent = _agent({"tools_config": {"dev": False, "think": True, "mind": None}})
    assert agent.switches == {"dev": False}
    assert agent.overrides == {"think": True}


def test_initial_toolkits_follow_the_order_of_the_allowed_toolkits() -> None:
    agent = _agent({"allowed_toolkits": ["dev", "mind"], "initial_toolkits": ["mind", "dev"]})
    assert agent.initial_toolkits == ("dev", "mind")


def test_null_counts_as_absent() -> None:
    entry = {
        "title": None,
        "loadout": None,
        "tools": None,
        "budget": None,
        "tools_config": None,
        "protected": None,
    }
    assert _agent(entry) == agents.Agent(key="ada")


def test_a_budget_without_limits_or_deferral_is_none() -> None:
    assert _agent({"budget": {"on_exceed": "warn", "max_tools": None}}).budget is None
    assert _agent({"budget": {"max_tools": 0}}).budget == agents.Budget(max_tools=0)
    assert _agent({"budget": {"on_exceed": "defer"}}).budget == agents.Budget(on_exceed="defer")


def test_a_member_may_be_a_key_or_carry_options() -> None:
    members = ["run", {"tool": "think", "options": {"depth": 2}}]
    toolkit = belts.load(
        {"tools": [{"key": "run"}, {"key": "think"}], "toolkits": [{"key": "x", "members": members}]}
    )
    assert toolkit.catalog.toolkits["x"].members == (
        catalog.Member(tool="run"),
        catalog.Member(tool="think", options={"depth": 2}),
    )


def test_options_are_copied_so_later_mutation_has_no_effect() -> None:
    options: dict[str, Any] = {"paths": ["a"]}
    agent = _agent({"tools": [{"tool": "run", "options": options}]})
    options["paths"].append("b")
    assert agent.tools[0].options == {"paths": ["a"]}


def test_schemas_are_stored_as_canonical_text() -> None:
    written = {"type": "object", "properties": {"b": {}, "a": {}}}
    tool = belts.load(
        {"tools": [{"key": "x", "input_schema": written, "annotations": {"z": 1, "a": 2}}]}
    ).catalog.tools["x"]
    assert tool.input_schema == schema.canonical(written)
    assert tool.annotations == '{"a":2,"z":1}'
    assert tool.output_schema == ""


def test_a_tool_without_a_schema_takes_no_arguments() -> None:
    tools = belts.load(
        {"tools": [{"key": "x"}, {"key": "y", "input_schema": dict(schema.EMPTY)}]}
    ).catalog.tools
    assert tools["x"].input_schema == tools["y"].input_schema == schema.EMPTY_TEXT


def test_tokens_are_counted_over_the_json_that_is_sent() -> None:
    document = {"tools": [{"key": "x", "description": "Runs.", "upstream_name": "X"}]}
    sent = '{"description":"Runs.","input_schema":{"properties":{},"type":"object"},"name":"x"}'
    assert belts.load(document, count_tokens={sent: 21}.__getitem__).catalog.tools["x"].tokens == 21
    assert belts.load(document).catalog.tools["x"].tokens == 0


def test_a_plugin_with_status_disabled_is_not_active() -> None:
    plugins = belts.load(
        {"plugins": [{"name": "a", "status": "disabled"}, {"name": "b", "status": "failed"}]}
    ).catalog.plugins
    assert (plugins["a"].status, plugins["a"].active) == ("ready", False)
    assert (plugins["b"].status, plugins["b"].active) == ("failed", True)


def test_categories_ignore_case_and_take_their_declared_spelling() -> None:
    document = {
        "categories": ["crm"],
        "plugins": [{"name": "p", "category": "Git"}],
        "tools": [{"key": "x", "category": "CRM"}],
        "loadouts": [{"name": "l", "categories": ["FileSystem"]}],
    }
    stored = belts.load(document).catalog
    assert (stored.plugins["p"].category, stored.tools["x"].category) == ("git", "crm")


def test_loadout_names_ignore_case_and_can_replace_a_built_in() -> None:
    document = {
        "loadouts": [{"name": "Minimal"}, {"name": "house", "parent": "DEVELOPER"}],
        "agents": [{"key": "ada", "loadout": "HOUSE", "session_loadouts": ["minimal"]}],
    }
    assert belts.check(document) == []


def test_a_malformed_pattern_is_reported_by_check_but_kept_by_load() -> None:
    document = {"loadouts": [{"name": "x", "discoverable": ["*", "a*", "*a", "my plugin"]}]}
    assert [problem.path for problem in belts.check(document)] == [
        "loadouts.x.discoverable[2]",
        "loadouts.x.discoverable[3]",
    ]
    assert belts.load(document).catalog.loadouts["x"].discoverable == ("*", "a*", "*a", "my plugin")


def test_an_empty_pattern_list_is_absent_but_an_empty_focus_is_kept() -> None:
    trigger = {"name": "t", "any": [], "all": [["a"]], "focus": []}
    belt = belts.load({"tools": [{"key": "run"}], "toolkits": [{"key": "x", "triggers": [trigger]}]})
    assert belt.catalog.toolkits["x"].triggers == (catalog.Trigger(name="t", all=(("a",),), focus=()),)


def test_the_number_and_stamp_are_set_on_the_catalog() -> None:
    stored = belts.load({}, number=7, stamp="s").catalog
    assert (stored.number, stored.stamp) == (7, "s")


def test_loading_an_invalid_belt_raises_every_problem() -> None:
    with pytest.raises(errors.Invalid) as refused:
        belts.load({"tools": [{"key": "1"}, {"key": "2"}]})
    assert [problem.path for problem in refused.value.problems] == ["tools.1.key", "tools.2.key"]
