"""The surface: what the model sees, its fingerprint, and what operators are warned of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, schema, surface


def made(**fields: Any) -> catalog.Catalog:
    return building.catalog_of(
        [
            building.tool("web__get", description="Fetch.", tokens=30, **fields),
            building.tool("clock", default_on=True, tokens=12),
            "calc",
        ],
        toolkits=[
            building.toolkit(
                "net",
                {"web__get": {"proxy": "p"}},
                policy="Use {active_tools}.",
                triggers=(catalog.Trigger(name="fetch", any=("fetch",), tool_choice="required"),),
            )
        ],
        loadouts=[catalog.Loadout(name="sums", discoverable=("cal*", "web"))],
    )


ADA = building.agent(allowed="net", initial="net")


def ask(
    ada: agents.Agent = ADA, message: str | None = None, stored: catalog.Catalog | None = None, **fields: Any
) -> surface.Surface:
    return surface.build(building.snapshot(stored or made(), ada, **fields), message)


def test_a_surface_is_everything_that_the_model_gets() -> None:
    document = ask(message="fetch it", request_id="r1").document()
    names = ["clock", "list_toolkits", "load_tools", "search_tools", "unload_tools", "web__get"]
    assert document["active_tools"] == names
    assert [tool["name"] for tool in document["tools"]] == names
    assert document["tools"][-1]["toolkits"] == ["net"]
    assert (document["agent"], document["session"], document["request_id"]) == ("ada", "s", "r1")
    assert document["tool_choice"] == "auto"
    assert document["directive"] == {
        "active_tools": ["web__get"],
        "tool_choice": "required",
        "first_step_only": True,
    }
    assert document["policy"] == {
        "text": '<toolkit name="net">\nUse web__get.\n</toolkit>',
        "sections": [{"toolkit": "net", "state": "on", "text": "Use web__get."}],
    }
    assert document["budget"]["tools"] == 2
    assert document["budget"]["tokens"] == 42
    assert document["warnings"] == []


def test_the_directive_names_no_meta_tools_which_stay_all_the_same() -> None:
    found = ask(message="fetch it")
    assert found.directive is not None
    assert found.directive.active_tools == ("web__get",)
    assert len(found.meta_tools) == 4


def test_without_a_message_there_is_no_directive() -> None:
    assert ask().directive is None
    assert ask(message=" ").document()["directive"] is None


@pytest.mark.parametrize(
    ("fields", "has_them"),
    [
        ({"allowed": "net", "initial": "net"}, True),
        ({"loadout": "sums"}, True),
        ({"loadout": "sums", "overrides": {"calc": False}, "tools": "web__get"}, False),
        ({}, False),
        ({"switches": {"net": True}}, False),
        ({"budget": agents.Budget(max_tools=0, on_exceed="defer")}, True),
    ],
)
def test_meta_tools_are_for_those_who_could_load_something(fields: Any, has_them: bool) -> None:
    assert bool(ask(building.agent(**fields)).meta_tools) is has_them


def test_what_was_loaded_by_name_can_be_unloaded_though_nothing_else_is_offered() -> None:
    ada = building.agent(loadout="sums", tools="web__get")
    assert ask(ada, session=building.session(tools="calc")).discoverable.count == 0
    assert ask(ada, session=building.session(tools="calc")).meta_tools


def test_nothing_to_call_is_never_required() -> None:
    found = ask(building.agent(overrides={"clock": False}), message="fetch it")
    assert (found.tools, found.tool_choice, found.directive) == ((), "none", None)


def test_a_surface_is_byte_identical_when_asked_twice_and_from_an_equal_catalog() -> None:
    stored = made()
    first = schema.canonical(ask(stored=stored, message="fetch").document())
    assert schema.canonical(ask(stored=stored, message="fetch").document()) == first
    assert schema.canonical(ask(message="fetch").document()) == first


@pytest.mark.parametrize(
    "fields",
    [{"request_id": "r9"}, {"session": building.session("net", request_id="r1")}, {"session": None}],
)
def test_the_fingerprint_is_not_of_session_and_request(fields: Any) -> None:
    assert ask(**fields).fingerprint == ask().fingerprint
    assert surface.build(building.snapshot(made(), ADA), revision=7).fingerprint == ask().fingerprint


@pytest.mark.parametrize(
    "other",
    [
        ask(message="fetch"),
        ask(stored=made(title="Get")),
        ask(stored=made(input_schema='{"type":"object"}')),
        ask(stored=made(annotations='{"readOnlyHint":true}')),
        ask(stored=made(output_schema='{"type":"object"}')),
        ask(building.agent(switches={"net": True})),
        ask(building.agent(switches={"net": True}, overrides={"clock": False}, allowed="net")),
        ask(
            stored=building.catalog_of(
                made().tools.values(),
                toolkits=[building.toolkit("net", "web__get", policy="Use {active_tools}!")],
            )
        ),
    ],
)
def test_the_fingerprint_moves_with_tools_policy_directive_and_meta_tools(other: surface.Surface) -> None:
    assert other.fingerprint != ask().fingerprint


def test_a_surface_gives_the_revision_that_it_was_asked_with_or_its_catalogs() -> None:
    assert ask().revision == 0
    assert surface.build(building.snapshot(made(), ADA), revision=412).document()["revision"] == 412


def test_what_could_be_had_is_counted_and_named() -> None:
    found = ask(building.agent(allowed="net", loadout="sums")).discoverable
    assert found == surface.Discoverable(count=2, toolkits=("net",), plugins=("calc",))
    assert ask(building.agent(loadout="sums")).discoverable.plugins == ("calc", "web")


def test_at_most_fifty_names_are_given_of_what_could_be_had() -> None:
    stored = building.catalog_of([f"t{number:03}" for number in range(120)])
    found = ask(building.agent(loadout="minimal"), stored=stored).discoverable
    assert (found.count, len(found.plugins)) == (120, 50)


def test_every_active_tool_says_why() -> None:
    assert {key: decision.code for key, decision in ask().because.items()} == {
        "clock": "default-on",
        "web__get": "initial",
    }


def codes(found: surface.Surface) -> list[str]:
    return [warning.code for warning in found.warnings]


def test_a_budget_that_is_passed_is_never_passed_silently() -> None:
    for on_exceed in ("warn", "refuse"):
        found = ask(building.agent(tools="web__get", budget=agents.Budget(max_tools=1, on_exceed=on_exceed)))
        assert codes(found) == ["over-budget"]
        assert "2 tools and 42 tokens are active; the budget is at most 1 tools" in found.warnings[0].message
    found = ask(
        building.agent(allowed="net", initial="net", budget=agents.Budget(max_tools=1, on_exceed="defer"))
    )
    assert (codes(found), found.warnings[0].message) == (
        ["budget-deferred"],
        "The budget deferred 1 tool: clock.",
    )
    found = ask(building.agent(tools="web__get", budget=agents.Budget(max_tokens=5, on_exceed="defer")))
    assert codes(found) == ["budget-deferred", "over-budget"]
    assert ask(building.agent(budget=agents.Budget(max_tools=1, max_tokens=12))).warnings == ()


def test_however_many_tools_the_budget_defers_the_warning_is_one_short_line() -> None:
    many = [building.tool(f"a_tool_with_a_long_name_{number}", default_on=True) for number in range(400)]
    ada = building.agent(budget=agents.Budget(max_tools=1, on_exceed="defer"))
    (warning,) = ask(ada, stored=building.catalog_of(many)).warnings
    assert warning.message.startswith("The budget deferred 399 tools: ")
    assert len(warning.message) < 300
    assert "\n" not in warning.message


def test_the_budget_is_told_beside_what_is_spent() -> None:
    spent = ask(building.agent(budget=agents.Budget(max_tools=5))).document()["budget"]
    assert spent == {
        "tools": 1,
        "tokens": 12,
        "policy_tokens": 0,
        "tokenizer": "o200k_base",
        "max_tools": 5,
        "max_tokens": None,
    }


def test_a_conflict_that_is_met_all_the_same_is_warned_of() -> None:
    found = ask(building.agent(tools="web__get", switches={"net": True}))
    assert codes(found) == ["options-conflict"]
    assert found.warnings[0].message == (
        "web__get comes from always-on 'web__get' with no options and from switch 'net' with options "
        "{'proxy': 'p'}. The first one applies."
    )
    assert ask(building.agent(tools="web__get", switches={"net": True}), subagent="explore").warnings == ()


def test_an_agent_that_may_load_reads_what_in_the_allowed_order_after_its_policy() -> None:
    stored = building.catalog_of(
        ["a", "b", "c", "d"],
        toolkits=[
            building.toolkit("first", "a", policy="Use {active_tools}."),
            building.toolkit("second", "b", description="Does b,\n  and more."),
            building.toolkit("third", "c"),
            building.toolkit("closed", "d"),
        ],
    )
    ada = building.agent(
        allowed="third second closed first", initial="first", switches={"first": True, "closed": False}
    )
    found = ask(ada, stored=stored)
    assert found.policy.text == (
        '<toolkit name="first">\nUse a.\n</toolkit>\n\n<loadable_toolkits>\nLoad a toolkit with load_tools when you'
        " need it: its tools are available from the next request.\n- third\n- second: Does b, and more.\n"
        "</loadable_toolkits>"
    )
    assert [section.toolkit for section in found.policy.sections] == ["first"]
    loaded = ask(ada, stored=stored, session=building.session("third"))
    assert loaded.policy.loadable == found.policy.loadable
    assert ask(ada, stored=stored).policy == found.policy
    assert "<loadable_toolkits>" not in ask(building.agent(), stored=stored).policy.text


def test_a_subagent_is_offered_nothing_that_would_only_refuse() -> None:
    ada = building.agent(allowed="net", subagent_kinds=("explore",))
    found = ask(ada, subagent="explore")
    assert {"load_tools", "unload_tools"}.isdisjoint(tool.name for tool in found.meta_tools)
    assert "<loadable_toolkits>" not in found.policy.text
