"""Tests of loadouts: chains, patterns, disabled entries, and what a loadout includes."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import catalog, keys, loadouts


def by_name(*made: catalog.Loadout) -> dict[str, catalog.Loadout]:
    return {keys.fold(entry.name): entry for entry in made}


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


def test_a_chain_is_followed_to_its_root_ignoring_case() -> None:
    made = by_name(loadout("Leaf", parent="MID"), loadout("mid", parent="Developer"))
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
def test_a_chain_ends_at_a_cycle_or_an_unknown_parent(made: list[catalog.Loadout], chain: list[str]) -> None:
    assert [link.name for link in loadouts.chain(by_name(*made), "a")] == chain


def test_a_stored_loadout_replaces_a_built_in_one_also_for_its_children() -> None:
    made = by_name(loadout("Minimal", categories=("web",)))
    seen = loadouts.view(made, "developer")
    assert seen.includes("", "web") == ("category", "Minimal")
    assert seen.includes("", "shell") is None


def test_a_view_is_the_union_of_the_chain_and_names_the_source_of_each_match() -> None:
    made = by_name(
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


def test_the_view_of_an_unknown_loadout_is_empty() -> None:
    seen = loadouts.view({}, "ghost")
    assert (seen.chain, seen.plugins, seen.categories, seen.patterns) == ((), {}, {}, {})


def test_an_empty_plugin_name_matches_no_entry() -> None:
    seen = loadouts.view(by_name(loadout("a", plugins=("",), discoverable=("x",), disabled=("",))), "a")
    assert seen.includes("", "") is None
    assert seen.discovers("") is None
    assert seen.disables("t", "") is None


def test_included_tools_are_listed_without_disabled_ones() -> None:
    stored = building.catalog_of(
        ["git__push", "git__log", "web__get", building.tool("own", category="GIT")],
        loadouts=[loadout("house", plugins=("WEB",), categories=("git",), disabled=("git__push",))],
    )
    assert sorted(loadouts.tools_included(stored, "HOUSE")) == ["git__log", "own", "web__get"]


def test_discoverable_tools_match_by_key_and_by_plugin() -> None:
    stored = building.catalog_of(
        ["git__push", "calc", "clock"], loadouts=[loadout("house", discoverable=("GIT", "cal*"))]
    )
    assert loadouts.tools_discoverable(stored, "house") == ("git__push", "calc")
    assert loadouts.tools_discoverable(stored, "full") == ()


def test_all_loadout_names_are_listed_once() -> None:
    stored = building.catalog_of(loadouts=[loadout("Minimal"), loadout("house")])
    assert loadouts.all_names(stored) == ("Minimal", "house", "developer", "research", "devops", "full")
    assert loadouts.exists(stored.loadouts, "HOUSE")
    assert loadouts.exists({}, "Full")
    assert not loadouts.exists({}, "ghost")
