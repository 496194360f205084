"""Loadouts: chains, patterns, disabled entries, and what comes into view."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import catalog, keys, loadouts


def known(*made: catalog.Loadout) -> dict[str, catalog.Loadout]:
    return {keys.fold(one.name): one for one in made}


def loadout(name: str, **fields: object) -> catalog.Loadout:
    return catalog.Loadout(name=name, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "parent", "categories", "plugins", "patterns"),
    [
        ("minimal", "", "filesystem shell", "think toolDiscovery", "*"),
        ("developer", "minimal", "git github search analysis memory", "", "docker* mcp*"),
        ("research", "minimal", "search web memory multimodal", "", ""),
        ("devops", "minimal", "git network scheduling", "", "docker* kube* terraform*"),
        ("full", "", " ".join(catalog.CATEGORIES), "toolDiscovery", ""),
    ],
)
def test_the_five_built_in_loadouts_are_those_of_the_seed(
    name: str, parent: str, categories: str, plugins: str, patterns: str
) -> None:
    built_in = loadouts.BUILT_IN[name]
    assert built_in.parent == parent
    assert (built_in.categories, built_in.plugins) == (tuple(categories.split()), tuple(plugins.split()))
    assert built_in.discoverable == tuple(patterns.split())
    assert built_in.disabled == ()
    assert len(loadouts.BUILT_IN) == 5
    assert len(catalog.CATEGORIES) == 13


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("docker", "docker", True),
        ("docker", "dockerCompose", False),
        ("docker*", "docker", True),
        ("docker*", "Docker-Compose", True),
        ("DOCKER*", "docker", True),
        ("docker*", "mydocker", False),
        ("*", "anything", True),
        ("*ckerX", "dockerX", False),
        ("do*er", "docker", False),
        ("**", "docker", False),
        ("Straße*", "STRASSEN", True),
    ],
)
def test_a_pattern_is_a_name_or_a_prefix_with_one_trailing_star(
    pattern: str, name: str, is_match: bool
) -> None:
    assert loadouts.matches(pattern, name) is is_match


def test_a_chain_is_walked_to_its_root_whatever_the_case() -> None:
    made = known(loadout("Leaf", parent="MID"), loadout("mid", parent="Developer"))
    assert [link.name for link in loadouts.chain(made, "LEAF")] == ["Leaf", "mid", "developer", "minimal"]


@pytest.mark.parametrize(
    ("made", "chain"),
    [
        ([loadout("a", parent="b"), loadout("b", parent="a")], ["a", "b"]),
        ([loadout("a", parent="A")], ["a"]),
        ([loadout("a", parent="ghost")], ["a"]),
        ([], []),
    ],
)
def test_a_chain_is_cut_at_a_revisit_and_at_an_unknown_parent(
    made: list[catalog.Loadout], chain: list[str]
) -> None:
    assert [link.name for link in loadouts.chain(known(*made), "a")] == chain


def test_a_stored_loadout_replaces_the_built_in_one_of_its_name_for_its_children_too() -> None:
    made = known(loadout("Minimal", categories=("web",)))
    seen = loadouts.view(made, "developer")
    assert seen.includes("", "web") == ("category", "Minimal")
    assert seen.includes("", "shell") is None


def test_a_view_is_the_union_over_the_chain_and_knows_which_level_brought_what() -> None:
    made = known(
        loadout("base", plugins=("Git",), categories=("Web",), discoverable=("a*",), disabled=("X",)),
        loadout("leaf", parent="base", plugins=("think",), discoverable=("b",), disabled=("y",)),
    )
    seen = loadouts.view(made, "leaf")
    assert seen.chain == ("leaf", "base")
    assert seen.includes("GIT", "") == ("plugin", "base")
    assert seen.includes("think", "web") == ("plugin", "leaf")
    assert seen.includes("other", "WEB") == ("category", "base")
    assert (seen.discovers("Abc"), seen.discovers("B"), seen.discovers("bc")) == ("a*", "b", None)
    assert (seen.disables("x", ""), seen.disables("t", "Y"), seen.disables("t", "")) == ("base", "leaf", None)


def test_an_unknown_loadout_brings_nothing_into_view() -> None:
    seen = loadouts.view({}, "ghost")
    assert (seen.chain, seen.plugins, seen.categories, seen.patterns) == ((), {}, {}, {})


def test_a_tool_without_a_plugin_is_neither_brought_in_nor_discovered_by_one() -> None:
    seen = loadouts.view(known(loadout("a", plugins=("",), discoverable=("x",), disabled=("",))), "a")
    assert seen.includes("", "") is None
    assert seen.discovers("") is None
    assert seen.disables("t", "") is None


def test_what_a_loadout_includes_is_enumerated_without_what_it_disables() -> None:
    stored = building.catalog_of(
        ["git__push", "git__log", "web__get", building.tool("own", category="GIT")],
        loadouts=[loadout("house", plugins=("WEB",), categories=("git",), disabled=("git__push",))],
    )
    assert sorted(loadouts.tools_included(stored, "HOUSE")) == ["git__log", "own", "web__get"]


def test_what_patterns_match_is_enumerated_by_key_and_by_plugin() -> None:
    stored = building.catalog_of(
        ["git__push", "calc", "clock"], loadouts=[loadout("house", discoverable=("GIT", "cal*"))]
    )
    assert loadouts.tools_discoverable(stored, "house") == ("git__push", "calc")
    assert loadouts.tools_discoverable(stored, "full") == ()


def test_every_loadout_is_named_once() -> None:
    stored = building.catalog_of(loadouts=[loadout("Minimal"), loadout("house")])
    assert loadouts.all_names(stored) == ("Minimal", "house", "developer", "research", "devops", "full")
    assert loadouts.exists(stored.loadouts, "HOUSE")
    assert loadouts.exists({}, "Full")
    assert not loadouts.exists({}, "ghost")
