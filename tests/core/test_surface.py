"""Tests of the surface: what the model receives, its fingerprint, and warnings for operators."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, schema, surface


def catalog_with(**fields: Any) -> catalog.Catalog:
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
# Has the same tools, and can load another.
LOADING = building.agent(allowed="net", initial="net", loadout="sums", overrides={"clock": True})


def surface_of(
    ada: agents.Agent = ADA, message: str | None = None, stored: catalog.Catalog | None = None, **fields: Any
) -> surface.Surface:
    return surface.build(building.snapshot(stored or catalog_with(), ada, **fields), message)


def test_a_surface_contains_everything_that_the_model_receives() -> None:
    document = surface_of(LOADING, message="fetch it", request_id="r1").document()
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


def test_a_directive_excludes_meta_tools_which_stay_available() -> None:
    result = surface_of(LOADING, message="fetch it")
    assert result.directive is not None
    assert result.directive.active_tools == ("web__get",)
    assert len(result.meta_tools) == 4


def test_without_a_message_there_is_no_directive() -> None:
    assert surface_of().directive is None
    assert surface_of(message=" ").document()["directive"] is None


@pytest.mark.parametrize(
    ("fields", "has_them"),
    [
        ({"allowed": "net"}, True),
        ({"allowed": "net", "switches": {"net": False}}, False),
        ({"allowed": "net", "initial": "net"}, False),
        ({"loadout": "sums"}, True),
        ({"loadout": "sums", "overrides": {"calc": False}, "tools": "web__get"}, False),
        ({}, False),
        ({"switches": {"net": True}}, False),
        ({"budget": agents.Budget(max_tools=0, on_exceed="defer")}, False),
    ],
)
def test_meta_tools_are_present_only_if_something_can_be_loaded(fields: Any, has_them: bool) -> None:
    assert bool(surface_of(building.agent(**fields)).meta_tools) is has_them
    assert not surface_of(building.agent(**fields), session=None).meta_tools


def test_a_tool_loaded_by_name_keeps_the_meta_tools_to_unload_it() -> None:
    ada = building.agent(loadout="sums", tools="web__get")
    assert surface_of(ada, session=building.session(tools="calc")).discoverable.count == 0
    assert surface_of(ada, session=building.session(tools="calc")).meta_tools


def test_a_tool_call_is_not_required_if_no_tool_is_active() -> None:
    result = surface_of(building.agent(overrides={"clock": False}), message="fetch it")
    assert (result.tools, result.tool_choice, result.directive) == ((), "none", None)


def test_a_surface_is_byte_identical_when_rebuilt_or_from_an_equal_catalog() -> None:
    stored = catalog_with()
    first = schema.canonical(surface_of(stored=stored, message="fetch").document())
    assert schema.canonical(surface_of(stored=stored, message="fetch").document()) == first
    assert schema.canonical(surface_of(message="fetch").document()) == first


@pytest.mark.parametrize(
    "fields",
    [{"request_id": "r9"}, {"session": building.session("net", request_id="r1")}, {"session": None}],
)
def test_the_fingerprint_does_not_depend_on_session_request_or_revision(fields: Any) -> None:
    assert surface_of(**fields).fingerprint == surface_of().fingerprint
    assert (
        surface.build(building.snapshot(catalog_with(), ADA), revision=7).fingerprint
        == surface_of().fingerprint
    )


@pytest.mark.parametrize(
    "other",
    [
        surface_of(message="fetch"),
        surface_of(stored=catalog_with(title="Get")),
        surface_of(stored=catalog_with(input_schema='{"type":"object"}')),
        surface_of(stored=catalog_with(annotations='{"readOnlyHint":true}')),
        surface_of(stored=catalog_with(output_schema='{"type":"object"}')),
        surface_of(LOADING),
        surface_of(building.agent(switches={"net": True}, overrides={"clock": False}, allowed="net")),
        surface_of(
            stored=building.catalog_of(
                catalog_with().tools.values(),
                toolkits=[building.toolkit("net", "web__get", policy="Use {active_tools}!")],
            )
        ),
    ],
)
def test_the_fingerprint_depends_on_tools_policy_directive_and_meta_tools(other: surface.Surface) -> None:
    assert other.fingerprint != surface_of().fingerprint


def test_a_surface_has_the_given_revision_or_that_of_its_catalog() -> None:
    assert surface_of().revision == 0
    assert surface.build(building.snapshot(catalog_with(), ADA), revision=412).document()["revision"] == 412


def test_discoverable_tools_are_counted_and_their_sources_named() -> None:
    result = surface_of(building.agent(allowed="net", loadout="sums")).discoverable
    assert result == surface.Discoverable(count=2, toolkits=("net",), plugins=("calc",))
    assert surface_of(building.agent(loadout="sums")).discoverable.plugins == ("calc", "web")


def test_at_most_50_discoverable_plugins_are_named() -> None:
    stored = building.catalog_of([f"t{number:03}" for number in range(120)])
    result = surface_of(building.agent(loadout="minimal"), stored=stored).discoverable
    assert (result.count, len(result.plugins)) == (120, 50)


def test_every_active_tool_has_a_reason() -> None:
    assert {key: decision.code for key, decision in surface_of().because.items()} == {
        "clock": "default-on",
        "web__get": "initial",
    }


def codes(result: surface.Surface) -> list[str]:
    return [warning.code for warning in result.warnings]


def test_an_exceeded_budget_always_gives_a_warning() -> None:
    for on_exceed in ("warn", "refuse"):
        result = surface_of(
            building.agent(tools="web__get", budget=agents.Budget(max_tools=1, on_exceed=on_exceed))
        )
        assert codes(result) == ["over-budget"]
        assert (
            "2 tools and 42 tokens are active; the budget is at most 1 tool and" in result.warnings[0].message
        )
    result = surface_of(
        building.agent(allowed="net", initial="net", budget=agents.Budget(max_tools=1, on_exceed="defer"))
    )
    assert (codes(result), result.warnings[0].message) == (
        ["budget-deferred"],
        "The budget deferred 1 tool: clock.",
    )
    result = surface_of(
        building.agent(tools="web__get", budget=agents.Budget(max_tokens=5, on_exceed="defer"))
    )
    assert codes(result) == ["budget-deferred", "over-budget"]
    assert surface_of(building.agent(budget=agents.Budget(max_tools=1, max_tokens=12))).warnings == ()


def test_the_warning_about_deferred_tools_is_one_short_line() -> None:
    many = [building.tool(f"a_tool_with_a_long_name_{number}", default_on=True) for number in range(400)]
    ada = building.agent(budget=agents.Budget(max_tools=1, on_exceed="defer"))
    (warning,) = surface_of(ada, stored=building.catalog_of(many)).warnings
    assert warning.message.startswith("The budget deferred 399 tools: ")
    assert len(warning.message) < 300
    assert "\n" not in warning.message


def test_the_budgets_limits_are_listed_with_its_use() -> None:
    spent = surface_of(building.agent(budget=agents.Budget(max_tools=5))).document()["budget"]
    assert spent == {
        "tools": 1,
        "tokens": 12,
        "policy_tokens": 0,
        "tokenizer": "o200k_base",
        "max_tools": 5,
        "max_tokens": None,
    }


def test_conflicting_options_give_a_warning() -> None:
    result = surface_of(building.agent(tools="web__get", switches={"net": True}))
    assert codes(result) == ["options-conflict"]
    assert result.warnings[0].message == (
        "web__get comes from always-on 'web__get' with no options and from switch 'net' with the "
        "option 'proxy'. The first one applies."
    )
    assert (
        surface_of(building.agent(tools="web__get", switches={"net": True}), subagent="explore").warnings
        == ()
    )


def test_loadable_toolkits_follow_the_policy_in_allowed_order() -> None:
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
    result = surface_of(ada, stored=stored)
    assert result.policy.text == (
        '<toolkit name="first">\nUse a.\n</toolkit>\n\n<loadable_toolkits>\nLoad a toolkit with load_tools when you'
        " need it: its tools are available from the next request.\n- third\n- second: Does b, and more.\n"
        "</loadable_toolkits>"
    )
    assert [section.toolkit for section in result.policy.sections] == ["first"]
    loaded = surface_of(ada, stored=stored, session=building.session("third"))
    assert loaded.policy.loadable == result.policy.loadable
    assert surface_of(ada, stored=stored).policy == result.policy
    assert "<loadable_toolkits>" not in surface_of(building.agent(), stored=stored).policy.text


def test_a_subagent_is_not_offered_loading() -> None:
    ada = building.agent(allowed="net", subagent_kinds=("explore",))
    result = surface_of(ada, subagent="explore")
    assert result.meta_tools == ()
    assert "<loadable_toolkits>" not in result.policy.text
