"""Tests of ``manage.py adopt``: the example of each supported product is adopted and behaves as documented."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core import management
from django.core.management import base

from tests.core import test_adoption as examples
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import surfaces
from toolbelt.runtime.calls import own_tools
from toolbelt.testing import OPERATOR

pytestmark = pytest.mark.django_db


def adopt(path: Path, document: Any, *options: str) -> tuple[str, str]:
    path.write_text(json.dumps(document), encoding="utf-8")
    printed, notes = io.StringIO(), io.StringIO()
    management.call_command("adopt", str(path), *options, stdout=printed, stderr=notes)
    return printed.getvalue(), notes.getvalue()


def active(agent: str, session: str | None = None, request_id: str | None = None) -> set[str]:
    return set(surfaces.ask(agent, session, request_id).resolution.active)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def declare(file: Path, plugin: str, *names: str) -> None:
    """Declare tools as the agent's program does, by the command."""
    tools = [
        {
            "name": name,
            "description": f"Use {name}.",
            "input_schema": {"type": "object", "properties": {"cmd": {"type": "string"}}},
        }
        for name in names
    ]
    listed = file.with_name("tools.json")
    listed.write_text(json.dumps(tools), encoding="utf-8")
    management.call_command("declare", plugin, str(listed), stdout=io.StringIO())


MINDROOM_TOOLS = ("file", "shell", "docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia")


def test_adopted_tools_wait_for_their_declaration_and_then_for_review(file: Path) -> None:
    adopt(file, examples.MINDROOM, "--import")
    assert surfaces.ask("assistant").resolution.decision("file").code == "tool-unseen"
    with pytest.raises(base.CommandError, match="has declared"):
        management.call_command("mcp", "approve", "mindroom", "--as-they-are", stdout=io.StringIO())

    declare(file, "mindroom", *MINDROOM_TOOLS)
    assert active("assistant") == set()

    management.call_command("mcp", "approve", "mindroom", "--as-they-are", stdout=io.StringIO())
    tool = surfaces.ask("assistant").resolution.context.catalog.tools["docker"]
    assert (tool.plugin, tool.description, "cmd" in tool.input_schema) == ("mindroom", "Use docker.", True)
    assert active("assistant") == {"file", "shell", "duckduckgo", "arxiv", "wikipedia"}


def test_a_declaration_is_enough_where_the_operator_trusts_the_program(file: Path) -> None:
    adopt(file, examples.MINDROOM, "--import")
    entries.change(OPERATOR.replace(confirm=True), "plugin", "mindroom", {"trusted": True})

    declare(file, "mindroom", *MINDROOM_TOOLS)

    assert "file" in active("assistant")


def test_adopting_the_same_file_again_changes_nothing(file: Path) -> None:
    adopt(file, examples.MINDROOM, "--import")
    declare(file, "mindroom", *MINDROOM_TOOLS)

    printed, _ = adopt(file, examples.MINDROOM, "--import")

    assert "0 created, 0 changed" in printed


def test_the_permissions_of_seajelly_hold_for_tools_that_are_declared_later(file: Path) -> None:
    config = {"self_evolution_toolkit": True, "push": True, "web_fetch": False}
    document = {"agent": "ada", "tools_config": config, "aliases": {"push": "git_push"}}
    belts.import_(OPERATOR, {"agents": [{"key": "ada"}]})

    adopt(file, document, "--import")
    declare(file, "seajelly", "git_push", "web_fetch")
    management.call_command("mcp", "approve", "seajelly", "--as-they-are", stdout=io.StringIO())

    assert entries.read("agent", "ada")["tools_config"] == {
        "git_push": True,
        "self_evolution_toolkit": True,
        "web_fetch": False,
    }
    assert active("ada") == {"git_push"}
    assert entries.read("toolkit", "self_evolution_toolkit") == {"key": "self_evolution_toolkit"}


def test_mindrooms_assistant_starts_and_loads_tools_as_documented(file: Path) -> None:
    adopt(file, examples.MINDROOM, "--import")
    declare(file, "mindroom", *MINDROOM_TOOLS)
    management.call_command("mcp", "approve", "mindroom", "--as-they-are", stdout=io.StringIO())
    research = {"file", "shell", "duckduckgo", "arxiv", "wikipedia"}
    assert active("assistant", "s", "1") == research
    loaded: Any = own_tools.call(RequestKey("assistant", "s", "1"), "load_tools", {"toolkit": "devops"})
    assert loaded.content["status"] == "loaded"
    assert active("assistant", "s", "1") == research
    assert active("assistant", "s", "2") == research | {"docker", "aws_lambda", "github"}
    sticky: Any = own_tools.call(RequestKey("assistant", "s", "2"), "unload_tools", {"toolkit": "research"})
    assert sticky.content["status"] == "sticky"


def test_adopting_without_import_prints_a_belt_and_writes_nothing(file: Path) -> None:
    revision = belts.revision()
    printed, notes = adopt(file, examples.MINDROOM)
    assert printed.startswith("plugins:")
    assert "agents.assistant.rooms" in notes
    assert "12 created" in notes
    assert belts.revision() == revision


def test_jd_ais_reviewer_has_inherited_tools_except_web_search(file: Path) -> None:
    plugins = ("git", "shell", "policy", "websearch", "docker")
    belts.import_(
        OPERATOR,
        {
            "plugins": [{"name": name} for name in plugins],
            "tools": [{"key": f"use_{name}", "plugin": name} for name in plugins],
            "agents": [{"key": "reviewer"}],
        },
    )
    loadout = {
        "Name": "security-reviewer",
        "ParentLoadoutName": "developer",
        "DefaultPlugins": ["think"],
        "IncludedCategories": ["Security"],
        "DiscoverablePatterns": ["docker*"],
        "DisabledPlugins": ["websearch"],
    }
    adopt(file, loadout, "--import")
    entries.change(OPERATOR.replace(confirm=True), "agent", "reviewer", {"loadout": "security-reviewer"})
    resolved = surfaces.ask("reviewer").resolution
    assert set(resolved.active) == {"use_git", "use_shell", "use_policy"}
    assert resolved.decision("use_docker").state == "discoverable"
    assert resolved.decision("use_websearch").state == "denied"


def test_seajellys_switch_grants_the_toolkit_except_overridden_tools(file: Path) -> None:
    members = ["github_read_file", "github_commit_push"]
    belts.import_(
        OPERATOR,
        {
            "tools": [{"key": key} for key in (*members, "run_sql")],
            "toolkits": [{"key": "self_evolution_toolkit", "members": members}],
            "agents": [{"key": "ada", "tools": ["run_sql"]}],
        },
    )
    adopt(file, {"self_evolution_toolkit": True, "github_commit_push": False}, "--agent", "ada", "--import")
    assert active("ada") == {"github_read_file", "run_sql"}
    adopt(file, {"self_evolution_toolkit": False, "github_read_file": True}, "--agent", "ada", "--import")
    assert active("ada") == {"run_sql"}


def test_agent_adapters_plugins_are_written_to_a_new_plugins_file(file: Path, tmp_path: Path) -> None:
    document = {"adapter": {}, "tool_plugins": [{"id": "my-tool-plugin", "config": {"api_key": "${KEY}"}}]}
    with pytest.raises(management.CommandError, match="--plugins-file"):
        adopt(file, document, "--import")
    target = tmp_path / "plugins.yaml"
    adopt(file, document, "--import", "--plugins-file", str(target))
    assert "api_key: ${KEY}" in target.read_text()
    with pytest.raises(management.CommandError, match="already exists"):
        adopt(file, document, "--import", "--plugins-file", str(target))


def test_a_file_with_a_problem_is_reported_and_not_imported(file: Path) -> None:
    revision = belts.revision()
    with pytest.raises(management.CommandError) as refused:
        adopt(file, examples.edited("agents.assistant.allowed_toolkits", ["devops", "reserch"]), "--import")
    first, second, last = str(refused.value).splitlines()
    assert first.startswith(
        f"{file}: agents.assistant.allowed_toolkits[1]: There is no toolkit named 'reserch'."
    )
    assert "initial_toolkits[0]" in second
    assert last == "Nothing was imported."
    assert belts.revision() == revision


def test_importing_a_denial_of_an_unknown_plugin_requires_confirmation(file: Path) -> None:
    loadout = {"name": "strict", "excludePlugins": ["websearch"]}
    assert "excludePlugins[0]" in adopt(file, loadout)[1]
    with pytest.raises(management.CommandError, match=r"excludePlugins\[0\].*--confirm"):
        adopt(file, loadout, "--import")
    adopt(file, loadout, "--import", "--confirm")
    assert entries.read("loadout", "strict")["disabled"] == ["websearch"]
