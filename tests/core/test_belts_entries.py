"""Tests that a single entry is validated against the stored configuration."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import agents, belts, errors

STORED = belts.load(
    {
        "categories": ["crm"],
        "plugins": [{"name": "git", "namespace": "git"}, {"name": "shell"}],
        "tools": [{"key": "git__log", "plugin": "git"}, {"key": "run", "plugin": "shell"}],
        "toolkits": [{"key": "dev", "members": [{"tool": "run", "options": {"cwd": "/"}}]}, {"key": "vcs"}],
        "loadouts": [{"name": "house", "parent": "full"}, {"name": "flat", "parent": "house"}],
        "agents": [{"key": "ada", "allowed_toolkits": ["dev", "vcs"]}],
        "sub_apps": [{"key": "chat", "agents": ["ada"]}],
    }
)
NAMES = belts.NameIndex.of_catalog(STORED.catalog, STORED.agents)


def _paths(kind: belts.KindName, entry: Any) -> list[str]:
    return [problem.path for problem in belts.check_entry(kind, entry, NAMES)]


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("category", "crm"),
        ("category", "sales"),
        ("plugin", {"name": "git", "namespace": "git", "title": "Git"}),
        ("plugin", {"name": "shell", "active": False}),
        ("tool", {"key": "git__log", "plugin": "git", "blocked": True}),
        ("toolkit", {"key": "dev", "members": ["run", "git__log"]}),
        ("loadout", {"name": "house", "parent": "minimal"}),
        ("loadout", {"name": "full"}),
        ("agent", {"key": "ada", "tools_config": {"dev": True}}),
        ("agent", {"key": "new", "loadout": "FLAT"}),
        ("sub_app", {"key": "chat", "tool_names": ["git__log"], "agents": ["ada"]}),
    ],
)
def test_a_valid_entry_can_replace_the_stored_one(kind: belts.KindName, entry: Any) -> None:
    assert belts.check_entry(kind, entry, NAMES) == []


@pytest.mark.parametrize(
    ("kind", "entry", "path"),
    [
        ("category", "CRM", "categories[0]"),
        ("category", "web", "categories[0]"),
        ("plugin", {"name": "hub", "namespace": "git"}, "plugins.hub.namespace"),
        ("plugin", {"name": "Git"}, "plugins.Git.name"),
        ("tool", {"key": "dev"}, "tools.dev.key"),
        ("toolkit", {"key": "Run"}, "toolkits.Run.key"),
        ("loadout", {"name": "house", "parent": "flat"}, "loadouts.house.parent"),
        ("loadout", {"name": "HOUSE"}, "loadouts.HOUSE.name"),
        ("agent", {"key": "ADA"}, "agents.ADA.key"),
        ("agent", {"key": "", "loadout": "full"}, "agents[0].key"),
        ("agent", ["ada"], "agents[0]"),
        ("sub_app", {"key": "chat", "agents": ["ada", "bob"]}, "sub_apps.chat.agents[1]"),
    ],
)
def test_an_invalid_entry_is_refused_at_the_same_path_as_in_a_belt(
    kind: belts.KindName, entry: Any, path: str
) -> None:
    assert _paths(kind, entry) == [path]


def test_a_namespace_that_excludes_the_plugins_tools_is_refused() -> None:
    (problem,) = belts.check_entry("plugin", {"name": "shell", "namespace": "sh"}, NAMES)
    assert problem.path == "plugins.shell.namespace"
    assert "run" in problem.message
    assert _paths("plugin", {"name": "git", "namespace": "vcs_"}) == ["plugins.git.namespace"]


def test_an_agent_with_different_options_for_one_tool_is_refused() -> None:
    assert _paths("agent", {"key": "ada", "tools": ["run"], "tools_config": {"dev": True}}) == [
        "agents.ada.tools_config.dev"
    ]


def test_an_entry_round_trips_through_its_value() -> None:
    entry = {"key": "ada", "tools": ["run"], "tools_config": {"git__log": False, "vcs": True}}
    value = belts.value("agent", entry, STORED.catalog)
    assert value == agents.Agent(
        key="ada", tools=(agents.AlwaysOn(tool="run"),), switches={"vcs": True}, overrides={"git__log": False}
    )
    assert belts.entry("agent", value) == entry


def test_an_entry_without_a_name_has_no_value() -> None:
    with pytest.raises(errors.Invalid):
        belts.value("tool", {"description": "d"}, STORED.catalog)


@pytest.mark.parametrize(
    ("kind", "entry", "address"),
    [
        ("toolkit", {"key": "dev.x"}, "toolkits.dev.x"),
        ("sub_app", {"key": " "}, "sub_apps[0]"),
        ("category", "crm", "categories[0]"),
    ],
)
def test_an_entrys_address_is_the_prefix_of_its_field_paths(
    kind: belts.KindName, entry: Any, address: str
) -> None:
    assert belts.address(kind, entry) == address
