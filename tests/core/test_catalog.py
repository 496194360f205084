"""Tests of the compiled catalog: order, categories and indexes."""

from __future__ import annotations

import dataclasses
import datetime as dt
from unittest import mock

import pytest

from tests.core import building
from tests.core.test_belts_writing import EVERYTHING
from toolbelt.core import belts, catalog, toolkit_hooks


def test_the_toolkits_of_a_tool_are_in_catalog_order() -> None:
    stored = building.catalog_of("a b", toolkits={"z": "a", "m": "b", "y": "b a"})
    assert [toolkit.key for toolkit in stored.toolkits_of["a"]] == ["z", "y"]
    assert [toolkit.key for toolkit in stored.in_order(["y", "ghost", "z"])] == ["z", "y"]


def test_duplicate_and_unknown_members_are_ignored() -> None:
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
def test_a_tools_category_falls_back_to_its_plugin_and_then_the_seed(
    plugin: catalog.Plugin, tool_category: str, category: str
) -> None:
    tool = catalog.Tool(key="x", plugin=plugin.name, category=tool_category)
    stored = building.catalog_of([tool], plugins=[plugin])
    assert stored.category(tool) == category
    assert stored.tools_of_category == ({category: ("x",)} if category else {})


def test_a_tool_without_a_plugin_has_only_its_own_category() -> None:
    stored = building.catalog_of([catalog.Tool(key="git"), catalog.Tool(key="x", category="web")])
    assert stored.tools_of_category == {"web": ("x",)}


def test_loadout_names_ignore_case() -> None:
    stored = building.catalog_of(loadouts=[catalog.Loadout(name="House")])
    assert stored.loadouts["house"].name == "House"


def test_a_sub_app_binds_its_existing_tools_to_its_agents() -> None:
    rooms = [
        catalog.SubApp(key="room", tool_names=("a", "ghost"), agents=("ada", "bob")),
        catalog.SubApp(key="hall", tool_names=("b",), agents=("ada",)),
    ]
    stored = building.catalog_of("a b", sub_apps=rooms)
    assert stored.bound == {"ada": (("a", "room"), ("b", "hall")), "bob": (("a", "room"),)}


def test_only_tools_outside_all_toolkits_have_their_own_policy() -> None:
    tools = [
        building.tool("alone", policy="Mind it."),
        building.tool("within", policy="Never read."),
        building.tool("blank", policy="  "),
    ]
    assert building.catalog_of(tools, toolkits={"kit": "within"}).with_own_policy == {"alone"}


def test_only_the_blocks_of_a_catalog_end() -> None:
    stored = dataclasses.replace(
        belts.load(EVERYTHING, lenient=True).catalog,
        stamp="s",
        purges={"tool git__log": 1},
        count_tokens=len,
        code={("git", "dev"): mock.Mock(spec=toolkit_hooks.ToolkitHooks)},
    )
    end = dt.datetime(2031, 5, 4, 14, tzinfo=dt.UTC)
    assert stored.as_of(end - dt.timedelta(seconds=1)) is stored
    assert stored.next_end() == end

    after = stored.as_of(end)

    assert after is stored.as_of(end + dt.timedelta(days=1)), (
        "the same, so that what is derived from it is kept"
    )
    assert (after.next_end(), after.stamp != stored.stamp) == (None, True)
    for kind in ("plugins", "tools", "toolkits"):
        for name, entry in getattr(after, kind).items():
            before = getattr(stored, kind)[name]
            assert (before.blocked, entry.blocked) == (True, False)
            assert dataclasses.replace(before, blocked=False, block_ends=None) == entry
    moved = {"stamp", "plugins", "tools", "toolkits", "toolkits_of", "with_off_text", "block_ends", "derived"}
    for field in dataclasses.fields(catalog.Catalog):
        if field.name not in moved:
            assert getattr(after, field.name) == getattr(stored, field.name), field.name
