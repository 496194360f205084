"""Tests that configurations of other programs are converted: the example of each seed, and invalid files."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from toolbelt.core import adoption, belts, errors

MINDROOM: dict[str, Any] = {
    "models": {"default": {"api_key": "sesame"}},
    "toolkits": {
        "devops": {
            "description": "Docker, AWS, and GitHub tools",
            "tools": ["docker", "aws_lambda", "github"],
        },
        "research": {"description": "Web search and papers", "tools": ["duckduckgo", "arxiv", "wikipedia"]},
    },
    "agents": {
        "assistant": {
            "display_name": "Assistant",
            "role": "A general-purpose helper",
            "model": "sonnet",
            "tools": ["file", "shell"],
            "allowed_toolkits": ["devops", "research"],
            "initial_toolkits": ["research"],
            "rooms": ["lobby"],
        }
    },
}
REVIEWER = {
    "name": "security-reviewer",
    "parent": "developer",
    "plugins": ["think"],
    "categories": ["security"],
    "discoverable": ["docker*"],
    "disabled": ["websearch"],
}
NOTHING: dict[str, Any] = {}


def adopt(document: Any, stored: Any = NOTHING, **options: Any) -> adoption.Adopted:
    return adoption.adopt(document, stored, **options)


def problems(document: Any, stored: Any = NOTHING, **options: Any) -> list[str]:
    with pytest.raises(errors.Invalid) as refused:
        adopt(document, stored, **options)
    return [problem.path for problem in refused.value.problems]


def edited(path: str, value: Any) -> dict[str, Any]:
    """Return MindRoom's example with the value at a path replaced, or removed (None)."""
    document: dict[str, Any] = json.loads(json.dumps(MINDROOM))
    *parents, last = path.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


def test_the_mindroom_example_converts_to_a_valid_belt() -> None:
    adopted = adopt(MINDROOM)
    assert adopted.kind == "mindroom"
    assert belts.check(adopted.belt) == []
    assert [tool["key"] for tool in adopted.belt["tools"]] == [
        *("docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia", "file", "shell")
    ]
    assert adopted.belt["agents"] == [
        {
            "key": "assistant",
            "title": "Assistant",
            "role": "A general-purpose helper",
            "model": "sonnet",
            "tools": ["file", "shell"],
            "allowed_toolkits": ["devops", "research"],
            "initial_toolkits": ["research"],
        }
    ]
    assert [left.path for left in adopted.skipped] == ["models", "agents.assistant.rooms"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (edited("agents.assistant.toolkits", {"x": {}}), "agents.assistant.toolkits"),
        (edited("agents.assistant.allowed_toolkit", ["x"]), "agents.assistant.allowed_toolkit"),
        (
            edited("agents.assistant.initial_toolkits", {"research": True}),
            "agents.assistant.initial_toolkits",
        ),
        (edited("allowed_toolkits", ["devops"]), "allowed_toolkits"),
        (edited("toolkits.agents", {"ada": {}}), "toolkits.agents"),
        (edited("agents.toolkits", {"devops": {}}), "agents.toolkits"),
        (edited("toolkits.devops", ["docker"]), "toolkits.devops"),
        (edited("toolkits.devops.tools", [["docker"]]), "toolkits.devops.tools[0]"),
        (edited("toolkits.devops.tool", ["docker"]), "toolkits.devops.tool"),
        (edited("toolkits", ["devops"]), "toolkits"),
        ({**edited("toolkits", None), "toolkit": MINDROOM["toolkits"]}, "toolkit"),
    ],
)
def test_a_misplaced_key_is_the_only_problem_reported(document: Any, path: str) -> None:
    assert problems(document) == [path]


def test_a_problem_of_the_belt_is_reported_at_its_path_in_the_file() -> None:
    document = edited("toolkits.devops.tools", ["docker", "list_toolkits"])
    adopted = adopt(document)
    assert [adopted.in_file(problem).path for problem in belts.check(adopted.belt)] == [
        "toolkits.devops.tools[1]",
    ]


def test_tool_options_are_kept_without_their_secrets() -> None:
    tools = [
        {"sql": {"db_url": "postgresql://ada:sesame@db/x", "limit": 5, "api_key": "sesame-2000"}},
        {"csv": None},
    ]
    adopted = adopt(edited("agents.assistant.tools", tools))
    assert adopted.belt["agents"][0]["tools"] == [{"tool": "sql", "options": {"limit": 5}}, "csv"]
    assert {"agents.assistant.tools[0].sql.db_url", "agents.assistant.tools[0].sql.api_key"} <= {
        left.path for left in adopted.skipped
    }
    assert "sesame" not in repr(adopted)


def test_default_tools_are_added_to_each_agent_that_includes_them() -> None:
    document = edited("defaults", {"tools": ["scheduler", "file"]})
    assert adopt(document).belt["agents"][0]["tools"] == ["file", "shell", "scheduler"]
    document["agents"]["assistant"]["include_default_tools"] = False
    assert adopt(document).belt["agents"][0]["tools"] == ["file", "shell"]


def test_a_stored_agent_keeps_fields_that_the_file_omits() -> None:
    stored = {
        "tools": [{"key": "file", "description": "Read."}, {"key": "shell", "plugin": "os"}],
        "agents": [
            {"key": "assistant", "budget": {"max_tools": 9}, "tools_config": {"shell": False}, "role": "x"}
        ],
    }
    adopted = adopt(MINDROOM, stored)
    (agent,) = adopted.belt["agents"]
    assert (agent["budget"], agent["tools_config"]) == ({"max_tools": 9}, {"shell": False})
    assert agent["role"] == "A general-purpose helper"
    assert not {"file", "shell"} & {tool["key"] for tool in adopted.belt["tools"]}


@pytest.mark.parametrize(
    "document",
    [
        {
            "name": "security-reviewer",
            "parent": "developer",
            "includeCategories": ["Security"],
            "includePlugins": ["think"],
            "discoverablePatterns": ["docker*"],
            "excludePlugins": ["websearch"],
        },
        {
            "Name": "security-reviewer",
            "ParentLoadoutName": "developer",
            "DefaultPlugins": ["think"],
            "IncludedCategories": ["Security"],
            "DiscoverablePatterns": ["docker*"],
            "DisabledPlugins": ["websearch"],
        },
        [
            {
                "Name": "security-reviewer",
                "ParentLoadoutName": "developer",
                "DefaultPlugins": ["think"],
                "IncludedCategories": [12],
                "DiscoverablePatterns": ["docker*"],
                "DisabledPlugins": ["websearch"],
            }
        ],
    ],
)
def test_loadouts_are_read_from_yaml_and_from_csharp_json(document: Any) -> None:
    adopted = adopt(document)
    assert (adopted.kind, adopted.belt) == ("jd-ai", {"loadouts": [REVIEWER]})


def test_an_excluded_category_is_refused_instead_of_ignored() -> None:
    assert problems({"name": "x", "includePlugins": ["git"], "excludeCategories": ["Shell"]}) == [
        "excludeCategories"
    ]


def test_plugins_are_converted_and_ignored_sections_are_listed() -> None:
    entry = {"id": "my-tool-plugin", "module": "my_tool_plugin", "className": "MyToolPlugin"}
    document = {
        "adapter": {"name": "weather"},
        "wallet": {"privateKey": "0xsesame"},
        "toolPlugins": [{**entry, "config": {"api_key": "${MY_TOOL_API_KEY}", "region": "eu"}}],
    }
    adopted = adopt(document)
    assert (adopted.kind, adopted.belt) == ("agent-adapter", {})
    assert adopted.plugins_file == {
        "tool_plugins": [
            {
                "id": "my-tool-plugin",
                "module": "my_tool_plugin",
                "class_name": "MyToolPlugin",
                "config": {"api_key": "${MY_TOOL_API_KEY}", "region": "eu"},
            }
        ]
    }
    assert [left.path for left in adopted.skipped] == ["adapter", "wallet"]


def test_a_plugins_secret_becomes_a_variable() -> None:
    document = {"tool_plugins": [{"id": "kb", "config": {"api_key": "sesame-2000"}}]}
    adopted = adopt(document)
    assert adopted.plugins_file["tool_plugins"][0]["config"] == {"api_key": "${KB_API_KEY}"}
    assert "KB_API_KEY" in adopted.notes[0].message
    assert "sesame" not in repr(adopted)


SWITCHES = {"self_evolution_toolkit": True, "github_commit_push": False, "run_sql": None}
CONFIG = {"self_evolution_toolkit": True, "github_commit_push": False}


@pytest.mark.parametrize(
    ("document", "options"),
    [
        (SWITCHES, {"agent": "ada"}),
        ({"tools_config": SWITCHES}, {"agent": "ada"}),
        ({"agent": "ada", "tools_config": SWITCHES, "system_prompt": "…"}, {}),
        ([{"id": 7, "name": "ada", "tools_config": SWITCHES}], {}),
    ],
)
def test_converting_tools_config_keeps_the_agents_other_fields(document: Any, options: Any) -> None:
    stored = {"agents": [{"key": "ada", "role": "Helps."}]}
    adopted = adopt(document, stored, **options)
    assert (adopted.kind, adopted.belt["agents"]) == (
        "seajelly",
        [{"key": "ada", "role": "Helps.", "tools_config": CONFIG}],
    )


def test_the_tools_and_toolkits_that_a_tools_config_names_are_created_to_be_declared() -> None:
    adopted = adopt({"agent": "ada", "tools_config": SWITCHES})
    assert adopted.belt["plugins"] == [{"name": "seajelly", "title": "SeaJelly", "declared_by": ["ada"]}]
    assert adopted.belt["tools"] == [{"key": "github_commit_push", "plugin": "seajelly", "seen": False}]
    assert adopted.belt["toolkits"] == [{"key": "self_evolution_toolkit"}]
    assert belts.check(adopted.belt) == []
    stored = {
        "tools": [{"key": "github_commit_push", "plugin": "git"}],
        "toolkits": [{"key": "self_evolution_toolkit"}],
        "plugins": [{"name": "git"}],
    }
    assert adopt({"agent": "ada", "tools_config": SWITCHES}, stored).belt.keys() == {"agents"}


@pytest.mark.parametrize(
    "document",
    [
        {"agent": "ada", "tools_config": {"push": True, "web": False}, "aliases": {"push": "git_push"}},
        {
            "aliases": {"push": "git_push"},
            "agents": [{"agent": "ada", "tools_config": {"push": True, "web": False}}],
        },
        {
            "agent": "ada",
            "tools_config": {"push": True, "git_push": True, "web": False},
            "aliases": {"push": "git_push"},
        },
    ],
)
def test_an_old_name_stands_for_the_one_that_the_alias_table_gives(document: Any) -> None:
    adopted = adopt(document)
    [agent] = adopted.belt["agents"]
    assert agent["tools_config"] == {"git_push": True, "web": False}
    assert [tool["key"] for tool in adopted.belt["tools"]] == ["git_push", "web"]


def test_an_old_and_a_new_name_with_different_values_are_refused() -> None:
    config = {"git_push": False, "push": True}
    assert problems({"agent": "ada", "tools_config": config, "aliases": {"push": "git_push"}}) == [
        "tools_config.push"
    ]


def test_mindrooms_tools_belong_to_a_plugin_that_its_agents_may_declare() -> None:
    adopted = adopt(MINDROOM)
    assert adopted.belt["plugins"] == [
        {"name": "mindroom", "title": "MindRoom", "declared_by": ["assistant"]}
    ]
    assert {"key": "docker", "plugin": "mindroom", "seen": False} in adopted.belt["tools"]
    assert belts.check(adopted.belt) == []


def test_tools_that_an_earlier_adoption_left_without_a_plugin_get_it() -> None:
    stored = {
        "plugins": [{"name": "mindroom", "declared_by": ["other"], "trusted": True}],
        "tools": [{"key": "docker", "default_on": True}, {"key": "shell", "description": "Run."}],
    }
    belt = adopt(MINDROOM, stored).belt
    assert belt["plugins"] == [{"name": "mindroom", "declared_by": ["other", "assistant"], "trusted": True}]
    assert {"key": "docker", "default_on": True, "plugin": "mindroom"} in belt["tools"]
    assert "shell" not in {tool["key"] for tool in belt["tools"]}


def test_a_server_with_the_name_of_the_program_is_not_taken_over() -> None:
    stored = {"plugins": [{"name": "mindroom", "upstream": {"url": "https://x.example/mcp"}}]}
    assert problems(MINDROOM, stored) == [""]


def test_a_switch_that_is_not_a_boolean_is_refused_at_its_key() -> None:
    document = {"agent": "ada", "tools_config": {"run_sql": "true", "x": True}}
    assert problems(document) == ["tools_config.run_sql"]


def test_a_misspelt_switch_is_reported_at_its_path_in_a_flat_file() -> None:
    assert problems({"run_sqll": True}, {"tools": [{"key": "run_sql"}]}, agent="ada") == ["run_sqll"]


def test_a_file_without_an_agent_requires_the_agent_option() -> None:
    with pytest.raises(errors.Invalid, match="--agent"):
        adopt({"run_sql": True})


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"agents": [{"key": "ada", "tools_config": {}}], "toolkits": []},
        {"loadouts": [{"name": "x", "plugins": ["git"]}]},
        {"categories": None},
        [],
        "text",
        None,
    ],
)
def test_a_belt_or_unrelated_document_is_not_recognized(document: Any) -> None:
    assert adoption.recognize(document) is None
    with pytest.raises(errors.Invalid, match="mindroom, jd-ai, agent-adapter, seajelly"):
        adopt(document)


@pytest.mark.parametrize("kind", adoption.KINDS)
@pytest.mark.parametrize(
    "document", [None, [], "text", {"x": [{}]}, {1: 2}, [[1]], {"agents": [1], "name": {}}]
)
def test_any_document_converts_to_a_belt_or_raises_invalid(kind: Any, document: Any) -> None:
    with contextlib.suppress(errors.Invalid):
        assert isinstance(adopt(document, kind=kind), adoption.Adopted)
