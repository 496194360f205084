"""Configurations of other programs are converted: each seed's example, and invalid ones."""

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
    """Return MindRoom's example with one key changed, or removed (None)."""
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


def test_mindrooms_example_becomes_a_sound_belt() -> None:
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
    assert [left.path for left in adopted.left_aside] == ["models", "agents.assistant.rooms"]


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
def test_a_misplaced_key_is_the_only_problem(document: Any, path: str) -> None:
    assert problems(document) == [path]


def test_a_problem_of_the_belt_has_its_path_in_the_file() -> None:
    document = edited("toolkits.devops.tools", ["docker", "list_toolkits"])
    adopted = adopt(document)
    assert [adopted.in_file(problem).path for problem in belts.check(adopted.belt)] == [
        "toolkits.devops.tools[1]",
    ]


def test_options_of_tools_are_kept_and_secrets_among_them_are_not() -> None:
    tools = [
        {"sql": {"db_url": "postgresql://ada:sesame@db/x", "limit": 5, "api_key": "sesame-2000"}},
        {"csv": None},
    ]
    adopted = adopt(edited("agents.assistant.tools", tools))
    assert adopted.belt["agents"][0]["tools"] == [{"tool": "sql", "options": {"limit": 5}}, "csv"]
    assert {"agents.assistant.tools[0].sql.db_url", "agents.assistant.tools[0].sql.api_key"} <= {
        left.path for left in adopted.left_aside
    }
    assert "sesame" not in repr(adopted)


def test_tools_of_the_defaults_come_to_every_agent_that_takes_them() -> None:
    document = edited("defaults", {"tools": ["scheduler", "file"]})
    assert adopt(document).belt["agents"][0]["tools"] == ["file", "shell", "scheduler"]
    document["agents"]["assistant"]["include_default_tools"] = False
    assert adopt(document).belt["agents"][0]["tools"] == ["file", "shell"]


def test_an_agent_that_is_stored_keeps_what_the_file_does_not_say() -> None:
    stored = {
        "tools": [{"key": "file"}, {"key": "shell"}],
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
def test_a_loadout_is_read_from_yaml_and_from_json_as_csharp_writes_it(document: Any) -> None:
    adopted = adopt(document)
    assert (adopted.kind, adopted.belt) == ("jd-ai", {"loadouts": [REVIEWER]})


def test_a_category_that_cannot_be_excluded_is_refused_rather_than_left_aside() -> None:
    assert problems({"name": "x", "includePlugins": ["git"], "excludeCategories": ["Shell"]}) == [
        "excludeCategories"
    ]


def test_plugins_become_a_plugins_file_and_other_sections_are_named() -> None:
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
    assert [left.path for left in adopted.left_aside] == ["adapter", "wallet"]


def test_a_secret_of_a_plugin_becomes_a_variable() -> None:
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
def test_tools_config_keeps_the_rest_of_its_agent(document: Any, options: Any) -> None:
    stored = {"agents": [{"key": "ada", "role": "Helps."}]}
    adopted = adopt(document, stored, **options)
    assert (adopted.kind, adopted.belt) == (
        "seajelly",
        {"agents": [{"key": "ada", "role": "Helps.", "tools_config": CONFIG}]},
    )


def test_a_switch_that_is_no_boolean_is_refused_at_its_key() -> None:
    document = {"agent": "ada", "tools_config": {"run_sql": "true", "x": True}}
    assert problems(document) == ["tools_config.run_sql"]


def test_an_unknown_switch_has_its_path_in_the_flat_file() -> None:
    adopted = adopt({"run_sqll": True}, agent="ada")
    assert [adopted.in_file(problem).path for problem in belts.check(adopted.belt)] == ["run_sqll"]


def test_a_file_that_does_not_say_whose_it_is_asks_for_the_agent() -> None:
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
def test_a_belt_and_anything_else_is_not_recognized(document: Any) -> None:
    assert adoption.recognize(document) is None
    with pytest.raises(errors.Invalid, match="mindroom, jd-ai, agent-adapter, seajelly"):
        adopt(document)


@pytest.mark.parametrize("kind", adoption.KINDS)
@pytest.mark.parametrize(
    "document", [None, [], "text", {"x": [{}]}, {1: 2}, [[1]], {"agents": [1], "name": {}}]
)
def test_any_document_of_any_kind_is_answered_with_problems_or_a_belt(kind: Any, document: Any) -> None:
    with contextlib.suppress(errors.Invalid):
        assert isinstance(adopt(document, kind=kind), adoption.Adopted)
