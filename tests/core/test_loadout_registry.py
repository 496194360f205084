"""Tests that loadouts can be built and registered in Python."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from toolbelt.core import catalog, errors, loadout_registry, loadouts


@dataclass(frozen=True)
class FakePlugin:
    name: str
    category: str | None = None


def test_developer_loadout_includes_the_git_plugin() -> None:
    registry = loadout_registry.Registry()
    active = registry.resolve_active(
        "developer", [FakePlugin("git"), FakePlugin("shell"), FakePlugin("docker")]
    )
    assert "git" in active
    assert "shell" in active
    assert "docker" not in active


def test_a_disabled_plugin_overrides_its_category() -> None:
    registry = loadout_registry.Registry()
    registry.register(
        loadout_registry.Builder.create("restricted").include_category("shell").disable("shell").build()
    )
    assert registry.resolve_active("restricted", [FakePlugin("shell")]) == frozenset()


def test_a_builder_keeps_the_order_of_its_calls() -> None:
    built = (
        loadout_registry.Builder.create("security-reviewer")
        .extends("developer")
        .include_category("security")
        .include_category("house-rules")
        .add_plugin("think")
        .add_plugin("policy")
        .add_discoverable("docker*")
        .disable("websearch")
        .build()
    )
    assert built == catalog.Loadout(
        name="security-reviewer",
        parent="developer",
        categories=("security", "house-rules"),
        plugins=("think", "policy"),
        discoverable=("docker*",),
        disabled=("websearch",),
    )


def test_duplicate_entries_are_dropped_ignoring_case() -> None:
    built = (
        loadout_registry.Builder.create("x")
        .add_plugin("Git")
        .add_plugin("git")
        .disable("web")
        .disable("WEB")
        .build()
    )
    assert (built.plugins, built.disabled) == (("Git",), ("web",))


def test_builders_are_immutable_and_can_share_a_base() -> None:
    base = loadout_registry.Builder.create("x").include_category("shell")
    assert base.disable("shell").build() != base.build() == catalog.Loadout(name="x", categories=("shell",))


@pytest.mark.parametrize(
    ("builder", "path"),
    [
        (loadout_registry.Builder.create(" "), "loadouts[0].name"),
        (loadout_registry.Builder.create("x").extends("X"), "loadouts.x.parent"),
        (loadout_registry.Builder.create("x").add_plugin("Git").disable("git"), "loadouts.x.disabled[0]"),
        (loadout_registry.Builder.create("x").add_plugin("docker*"), "loadouts.x.plugins[0]"),
        (loadout_registry.Builder.create("x").add_discoverable(""), "loadouts.x.discoverable[0]"),
    ],
)
def test_building_an_invalid_loadout_raises_an_error(builder: loadout_registry.Builder, path: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        builder.build()
    assert [problem.path for problem in refused.value.problems] == [path]


def test_a_registry_starts_with_the_five_built_in_loadouts() -> None:
    registry = loadout_registry.Registry()
    assert [loadout.name for loadout in registry.all()] == [
        "minimal",
        "developer",
        "research",
        "devops",
        "full",
    ]
    assert registry.get("DevOps") is loadouts.BUILT_IN["devops"]
    assert registry.get("ghost") is None


def test_registering_replaces_a_loadout_of_the_same_name_in_place() -> None:
    registry = loadout_registry.Registry()
    registry.register(loadout_registry.Builder.create("Minimal").add_plugin("only").build())
    assert [loadout.name for loadout in registry.all()][:2] == ["Minimal", "developer"]
    assert registry.resolve_active("developer", ["only", "file", "git"]) == {"only", "git"}
    assert loadout_registry.Registry().get("minimal") is loadouts.BUILT_IN["minimal"]


def test_discoverable_plugins_match_and_are_not_active_or_disabled() -> None:
    registry = loadout_registry.Registry()
    registry.register(loadout_registry.Builder.create("x").extends("developer").disable("mcp").build())
    plugins: list[str | FakePlugin] = [
        "git",
        "docker",
        "docker-compose",
        "mcp",
        "mcpEcosystem",
        FakePlugin("odd", "git"),
    ]
    assert registry.resolve_active("x", plugins) == {"git", "odd"}
    assert registry.resolve_discoverable("x", plugins) == {"docker", "docker-compose", "mcpEcosystem"}


def test_an_unknown_loadout_resolves_to_nothing() -> None:
    registry = loadout_registry.Registry()
    assert registry.resolve_active("ghost", ["git"]) == frozenset()
    assert registry.resolve_discoverable("ghost", ["git"]) == frozenset()


def test_a_chain_ends_at_an_unknown_parent_or_a_cycle() -> None:
    registry = loadout_registry.Registry()
    registry.register(loadout_registry.Builder.create("a").extends("b").add_plugin("one").build())
    assert registry.resolve_active("a", ["one", "two"]) == {"one"}
    registry.register(loadout_registry.Builder.create("b").extends("a").add_plugin("two").build())
    assert registry.resolve_active("a", ["one", "two"]) == {"one", "two"}


def test_concurrent_registrations_are_all_kept() -> None:
    registry = loadout_registry.Registry()
    start = threading.Barrier(8)

    def register(worker: int) -> None:
        start.wait()
        for number in range(50):
            registry.register(catalog.Loadout(name=f"w{worker}-{number}"))

    threads = [threading.Thread(target=register, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.all()) == 5 + 8 * 50
