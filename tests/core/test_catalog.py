"""The compiled catalog: order, categories, indexes."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import catalog


def test_toolkits_over_a_tool_stand_in_the_order_of_the_toolkits() -> None:
    stored = building.catalog_of("a b", toolkits={"z": "a", "m": "b", "y": "b a"})
    assert [toolkit.key for toolkit in stored.toolkits_of["a"]] == ["z", "y"]
    assert [toolkit.key for toolkit in stored.in_order(["y", "ghost", "z"])] == ["z", "y"]


def test_a_member_that_stands_twice_or_does_not_exist_is_passed_over() -> None:
    twice = catalog.Toolkit(key="kit", members=tuple(map(_member, ("a", "ghost", "a"))))
    stored = building.catalog_of("a", toolkits=[twice])
    assert [toolkit.key for toolkit in stored.toolkits_of["a"]] == ["kit"]
    assert "ghost" not in stored.toolkits_of


def _member(key: str) -> catalog.Member:
    return catalog.Member(tool=key)


@pytest.mark.parametrize(
    ("plugin", "tool_category", "category"),
    [
        (catalog.Plugin(name="git"), "", "git"),
        (catalog.Plugin(name="WebSearch"), "", "search"),
        (catalog.Plugin(name="mcpecosystem"), "", "orchestration"),
        (catalog.Plugin(name="git", category="security"), "", "security"),
        (catalog.Plugin(name="git", category="security"), "web", "web"),
        (catalog.Plugin(name="unheard"), "", ""),
    ],
)
def test_a_category_is_the_tools_own_else_its_plugins_else_the_seeds(
    plugin: catalog.Plugin, tool_category: str, category: str
) -> None:
    tool = catalog.Tool(key="x", plugin=plugin.name, category=tool_category)
    stored = building.catalog_of([tool], plugins=[plugin])
    assert stored.category(tool) == category
    assert stored.tools_of_category == ({category: ("x",)} if category else {})


def test_a_tool_without_a_plugin_has_only_its_own_category() -> None:
    stored = building.catalog_of([catalog.Tool(key="git"), catalog.Tool(key="x", category="web")])
    assert stored.tools_of_category == {"web": ("x",)}


def test_loadouts_are_found_whatever_their_case() -> None:
    stored = building.catalog_of(loadouts=[catalog.Loadout(name="House")])
    assert stored.loadouts["house"].name == "House"


def test_a_sub_app_binds_the_tools_that_exist_to_the_agents_that_serve_it() -> None:
    rooms = [
        catalog.SubApp(key="room", tool_names=("a", "ghost"), agents=("ada", "bob")),
        catalog.SubApp(key="hall", tool_names=("b",), agents=("ada",)),
    ]
    stored = building.catalog_of("a b", sub_apps=rooms)
    assert stored.bound == {"ada": (("a", "room"), ("b", "hall")), "bob": (("a", "room"),)}


def test_only_tools_outside_every_toolkit_have_a_policy_of_their_own() -> None:
    tools = [
        building.tool("alone", policy="Mind it."),
        building.tool("within", policy="Never read."),
        building.tool("blank", policy="  "),
    ]
    assert building.catalog_of(tools, toolkits={"kit": "within"}).with_own_policy == {"alone"}
