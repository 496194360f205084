"""Tests that problems of invalid documents are reported at the right path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import samples
from toolbelt.core import belts, errors

LONG = "a" * 65


def _problems(document: Any) -> dict[str, str]:
    return {problem.path: problem.message for problem in belts.check(document)}


def test_the_sample_belt_is_valid() -> None:
    assert belts.check(samples.VALID) == []


@pytest.mark.parametrize(
    ("section", "entry", "path"),
    [
        # names
        ("plugins", {"name": "a b"}, "plugins.a b.name"),
        ("plugins", {"name": ""}, "plugins[2].name"),
        ("plugins", {"title": "nameless"}, "plugins[2].name"),
        ("tools", {"key": "1st"}, "tools.1st.key"),
        ("tools", {"key": LONG}, f"tools.{LONG}.key"),
        ("tools", {"key": "call_tool"}, "tools.call_tool.key"),
        ("tools", {"key": 5}, "tools[3].key"),
        ("tools", {"key": "a\0b"}, "tools.a\0b.key"),
        ("toolkits", {"key": "git__all"}, "toolkits.git__all.key"),
        ("toolkits", {"key": "search_tools"}, "toolkits.search_tools.key"),
        ("loadouts", {"name": "  "}, "loadouts[1].name"),
        ("agents", {"key": "ada lovelace"}, "agents.ada lovelace.key"),
        ("sub_apps", {"key": "a/b"}, "sub_apps.a/b.key"),
        ("categories", "two words", "categories[1]"),
        ("categories", "", "categories[1]"),
        ("categories", 5, "categories[1]"),
        # names that are taken
        ("plugins", {"name": "GIT"}, "plugins.GIT.name"),
        ("tools", {"key": "Think"}, "tools.Think.key"),
        ("toolkits", {"key": "RUN"}, "toolkits.RUN.key"),
        ("toolkits", {"key": "think"}, "toolkits.think.key"),
        ("loadouts", {"name": "House"}, "loadouts.House.name"),
        ("agents", {"key": "Ada"}, "agents.Ada.key"),
        ("sub_apps", {"key": "CHAT"}, "sub_apps.CHAT.key"),
        ("categories", "CRM", "categories[1]"),
        ("categories", "crm", "categories[1]"),
        ("categories", "GitHub", "categories[1]"),
        ("plugins", {"name": "hub", "namespace": "GIT"}, "plugins.hub.namespace"),
        # entries and fields of the wrong type
        ("tools", "think", "tools[3]"),
        ("tools", None, "tools[3]"),
        ("plugins", {"name": "x", "enabled": True}, "plugins.x.enabled"),
        ("agents", {"key": "x", "budget": {"tools": 3}}, "agents.x.budget.tools"),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": ["a"], "al": []}]},
            "toolkits.x.triggers[0].al",
        ),
        (
            "toolkits",
            {"key": "x", "members": [{"tool": "run", "option": {}}]},
            "toolkits.x.members[0].option",
        ),
        ("plugins", {"name": "x", "trusted": 1}, "plugins.x.trusted"),
        ("plugins", {"name": "x", "title": ["t"]}, "plugins.x.title"),
        ("tools", {"key": "x", "default_on": "yes"}, "tools.x.default_on"),
        ("tools", {"key": "x", "description": "half \ud800"}, "tools.x.description"),
        ("tools", {"key": "x", "annotations": []}, "tools.x.annotations"),
        ("tools", {"key": "x", "annotations": {"a": float("nan")}}, "tools.x.annotations"),
        ("tools", {"key": "x", "annotations": {1: "a"}}, "tools.x.annotations"),
        ("toolkits", {"key": "x", "members": "run"}, "toolkits.x.members"),
        ("toolkits", {"key": "x", "members": [["run"]]}, "toolkits.x.members[0]"),
        ("toolkits", {"key": "x", "members": [{"options": {}}]}, "toolkits.x.members[0].tool"),
        (
            "toolkits",
            {"key": "x", "members": [{"tool": "run", "options": 1}]},
            "toolkits.x.members[0].options",
        ),
        ("toolkits", {"key": "x", "tool_notes": {"run": 1}}, "toolkits.x.tool_notes.run"),
        ("toolkits", {"key": "x", "tool_notes": ["run"]}, "toolkits.x.tool_notes"),
        ("loadouts", {"name": "x", "categories": [True]}, "loadouts.x.categories[0]"),
        ("agents", {"key": "x", "tools_config": [["run", True]]}, "agents.x.tools_config"),
        ("agents", {"key": "x", "tools_config": {"run": 1}}, "agents.x.tools_config.run"),
        ("agents", {"key": "x", "tools_config": {"run": True, "": True}}, "agents.x.tools_config[1]"),
        ("agents", {"key": "x", "tools_config": {3: True}}, "agents.x.tools_config[0]"),
        ("agents", {"key": "x", "budget": 30}, "agents.x.budget"),
        ("agents", {"key": "x", "budget": {"max_tools": -1}}, "agents.x.budget.max_tools"),
        ("agents", {"key": "x", "budget": {"max_tools": True}}, "agents.x.budget.max_tools"),
        ("agents", {"key": "x", "budget": {"max_tokens": 1.5}}, "agents.x.budget.max_tokens"),
        ("agents", {"key": "x", "budget": {"max_tokens": 2**31}}, "agents.x.budget.max_tokens"),
        ("agents", {"key": "x", "budget": {"on_exceed": "explode"}}, "agents.x.budget.on_exceed"),
        ("agents", {"key": "x", "kind": "explorer"}, "agents.x.kind"),
        ("agents", {"key": "x", "subagent_kinds": ["task", "t"]}, "agents.x.subagent_kinds[1]"),
        # plugins and tools
        ("plugins", {"name": "x", "namespace": "a__b"}, "plugins.x.namespace"),
        ("plugins", {"name": "x", "category": "gti"}, "plugins.x.category"),
        ("plugins", {"name": "x", "status": "broken"}, "plugins.x.status"),
        ("plugins", {"name": "x", "status": "disabled", "active": True}, "plugins.x.active"),
        ("tools", {"key": "x", "plugin": "gitt"}, "tools.x.plugin"),
        ("tools", {"key": "x", "category": "cms"}, "tools.x.category"),
        ("tools", {"key": "status", "plugin": "git"}, "tools.status.key"),
        ("tools", {"key": "git__", "plugin": "git"}, "tools.git__.key"),
        ("tools", {"key": "x", "input_schema": True}, "tools.x.input_schema"),
        ("tools", {"key": "x", "input_schema": {"type": "objekt"}}, "tools.x.input_schema"),
        (
            "tools",
            {"key": "x", "output_schema": {"properties": {"a": {"type": "txt"}}}},
            "tools.x.output_schema",
        ),
        # toolkits
        ("toolkits", {"key": "x", "members": ["run", "ghost"]}, "toolkits.x.members[1]"),
        ("toolkits", {"key": "x", "members": [{"tool": "ghost"}]}, "toolkits.x.members[0]"),
        ("toolkits", {"key": "x", "members": ["load_tools"]}, "toolkits.x.members[0]"),
        ("toolkits", {"key": "x", "members": ["dev"]}, "toolkits.x.members[0]"),
        ("toolkits", {"key": "x", "members": ["run", "think", {"tool": "run"}]}, "toolkits.x.members[2]"),
        ("toolkits", {"key": "x", "tool_notes": {"run": "", "ghost": ""}}, "toolkits.x.tool_notes.ghost"),
        ("toolkits", {"key": "x", "triggers": [{"any": ["a"]}]}, "toolkits.x.triggers[0].name"),
        ("toolkits", {"key": "x", "triggers": [{"name": "t"}]}, "toolkits.x.triggers[0]"),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": [], "none": ["a"]}]},
            "toolkits.x.triggers[0]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": ["a", "("]}]},
            "toolkits.x.triggers[0].any[1]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": [" "]}]},
            "toolkits.x.triggers[0].any[0]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": ["a"], "none": [r"(a)\1"]}]},
            "toolkits.x.triggers[0].none[0]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "all": [["a"], ["b", "["]]}]},
            "toolkits.x.triggers[0].all[1][1]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "all": [["a"], []]}]},
            "toolkits.x.triggers[0].all[1]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": ["a"], "focus": ["run", "dev"]}]},
            "toolkits.x.triggers[0].focus[1]",
        ),
        (
            "toolkits",
            {"key": "x", "triggers": [{"name": "t", "any": ["a"], "tool_choice": "none"}]},
            "toolkits.x.triggers[0].tool_choice",
        ),
        # loadouts
        ("loadouts", {"name": "x", "parent": "ghost"}, "loadouts.x.parent"),
        ("loadouts", {"name": "x", "parent": "X"}, "loadouts.x.parent"),
        ("loadouts", {"name": "minimal", "parent": "devops"}, "loadouts.minimal.parent"),
        ("loadouts", {"name": "x", "plugins": ["a", "A"]}, "loadouts.x.plugins[1]"),
        ("loadouts", {"name": "x", "plugins": ["docker*"]}, "loadouts.x.plugins[0]"),
        ("loadouts", {"name": "x", "categories": ["git", "Git"]}, "loadouts.x.categories[1]"),
        ("loadouts", {"name": "x", "categories": ["gti"]}, "loadouts.x.categories[0]"),
        ("loadouts", {"name": "x", "discoverable": ["a*", "A*"]}, "loadouts.x.discoverable[1]"),
        ("loadouts", {"name": "x", "discoverable": [""]}, "loadouts.x.discoverable[0]"),
        ("loadouts", {"name": "x", "denied_risks": ["deletes"]}, "loadouts.x.denied_risks[0]"),
        ("agents", {"key": "x", "denied_risks": ["read-only"]}, "agents.x.denied_risks[0]"),
        ("agents", {"key": "x", "denied_risks": ["writes", "writes"]}, "agents.x.denied_risks[1]"),
        ("loadouts", {"name": "x", "disabled": ["git__*"]}, "loadouts.x.disabled[0]"),
        ("loadouts", {"name": "x", "plugins": ["git"], "disabled": ["run", "GIT"]}, "loadouts.x.disabled[1]"),
        # agents
        ("agents", {"key": "x", "loadout": "ghost"}, "agents.x.loadout"),
        ("agents", {"key": "x", "tools": ["run", "ghost"]}, "agents.x.tools[1]"),
        ("agents", {"key": "x", "tools": ["run", {"tool": "run"}]}, "agents.x.tools[1]"),
        ("agents", {"key": "x", "tools_config": {"ghost": None}}, "agents.x.tools_config.ghost"),
        ("agents", {"key": "x", "tools_config": {"load_tools": True}}, "agents.x.tools_config.load_tools"),
        ("agents", {"key": "x", "allowed_toolkits": ["run"]}, "agents.x.allowed_toolkits[0]"),
        ("agents", {"key": "x", "allowed_toolkits": ["dev", "dev"]}, "agents.x.allowed_toolkits[1]"),
        ("agents", {"key": "x", "initial_toolkits": ["dev"]}, "agents.x.initial_toolkits[0]"),
        ("agents", {"key": "x", "initial_toolkits": ["nope"]}, "agents.x.initial_toolkits[0]"),
        (
            "agents",
            {"key": "x", "allowed_toolkits": ["dev"], "initial_toolkits": ["dev", "dev"]},
            "agents.x.initial_toolkits[1]",
        ),
        ("agents", {"key": "x", "session_loadouts": ["full", "ghost"]}, "agents.x.session_loadouts[1]"),
        ("agents", {"key": "x", "session_loadouts": ["full", "FULL"]}, "agents.x.session_loadouts[1]"),
        ("agents", {"key": "x", "subagent_kinds": ["plan", "plan"]}, "agents.x.subagent_kinds[1]"),
        # sub-apps
        ("sub_apps", {"key": "x", "tool_names": ["dev"]}, "sub_apps.x.tool_names[0]"),
        ("sub_apps", {"key": "x", "tool_names": ["run", "run"]}, "sub_apps.x.tool_names[1]"),
        ("sub_apps", {"key": "x", "agents": ["ghost"]}, "sub_apps.x.agents[0]"),
        ("sub_apps", {"key": "x", "agents": ["ada", "ada"]}, "sub_apps.x.agents[1]"),
    ],
)
def test_an_invalid_value_is_reported_only_at_its_path(section: str, entry: Any, path: str) -> None:
    document = samples.valid_belt_with(section, entry)
    assert list(_problems(document)) == [path]
    with pytest.raises(errors.Invalid):
        belts.load(document)


@pytest.mark.parametrize(
    ("document", "path"),
    [([], ""), ("belt", ""), (None, ""), ({"tool": []}, "tool"), ({"tools": {}}, "tools"), ({5: []}, "[0]")],
)
def test_a_document_of_the_wrong_shape_is_refused(document: Any, path: str) -> None:
    assert list(_problems(document)) == [path]


def test_a_command_of_the_wrong_shape_is_not_reported_as_missing() -> None:
    document = {"plugins": [{"name": "git", "upstream": {"command": ["python3", "server.py"]}}]}
    assert list(_problems(document)) == ["plugins.git.upstream.command"]


def test_every_loadout_in_a_cycle_is_reported() -> None:
    document = samples.valid_belt_with(
        "loadouts", {"name": "a", "parent": "b"}, {"name": "b", "parent": "A"}, {"name": "c", "parent": "a"}
    )
    assert list(_problems(document)) == ["loadouts.a.parent", "loadouts.b.parent"]
    assert "a → b → A" in _problems(document)["loadouts.a.parent"]


def test_all_problems_are_reported_in_document_order() -> None:
    document = {
        "agents": [{"tools_config": {"x": 1, "run": "no"}, "loadout": "ghost", "key": "a b"}],
        "toolkits": [{"key": "dev", "members": ["run", 5, "ghost", "run"], "blocked": 0}],
        "ghosts": [],
        "tools": [{"key": "run"}, {"key": "run"}],
    }
    assert [problem.path for problem in belts.check(document)] == [
        "agents.a b.tools_config.x",
        "agents.a b.tools_config.x",
        "agents.a b.tools_config.run",
        "agents.a b.loadout",
        "agents.a b.key",
        "toolkits.dev.members[1]",
        "toolkits.dev.members[2]",
        "toolkits.dev.members[3]",
        "toolkits.dev.blocked",
        "ghosts",
        "tools.run.key",
    ]


@pytest.mark.parametrize(
    "plugins",
    [{"git"}, frozenset({"git"}), iter(["git"]), {"git": 1}.keys()],
    ids=["set", "frozenset", "iterator", "keys"],
)
def test_only_a_list_is_a_list(plugins: Any) -> None:
    problems = _problems({"loadouts": [{"name": "house", "plugins": plugins}]})
    assert "must be a list" in problems["loadouts.house.plugins"]
