"""Tests of self_evolution's configuration and toolkit, and of the kinds of repositories that it supports."""

from __future__ import annotations

import pathlib

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins import config as configs
from toolbelt.plugins import contract
from toolbelt.plugins.builtin.self_evolution import git, plugin, toolkit

MESSAGE = "Greet the world\n\nBecause it is there."
PATCH = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}


def configured(repository: repositories.Repository, **config: object) -> runtime.RunningPlugin:
    return runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), **config})


def test_the_plugin_is_valid() -> None:
    runtime.assert_valid(plugin.SelfEvolution())


def test_the_toolkit_has_the_specified_eight_tools() -> None:
    names = {name.removeprefix("evolve__") for name in toolkit.SelfEvolutionToolkit.members}
    assert names == {
        *("read_file", "list_files", "search_code", "patch_files"),
        *("commit_push", "compare_commits", "revert_commit", "check_deploy"),
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "repository: Field required"),
        ({"repository": "here"}, "is not a directory's absolute path"),
        ({"repository": "/nowhere/at/all"}, "is not a directory's absolute path"),
        ({"repository": "/", "prefix": "x/"}, "no setting 'prefix'"),
        ({"repository": "/", "branch_prefix": ""}, "branch_prefix: "),
        ({"repository": "/", "branch_prefix": "evolve"}, "branch_prefix: "),
        ({"repository": "/", "branch_prefix": "-x/"}, "branch_prefix: "),
        ({"repository": "/", "base": "--all"}, "base: "),
        ({"repository": "/", "check_command": "make test"}, "check_command: Input should be a valid tuple"),
        ({"repository": "/", "check_seconds": 0}, "check_seconds: "),
        ({"repository": "/", "push": "yes"}, "push: Input should be a valid boolean"),
        ({"repository": "/", "remote": "--upload-pack=x"}, "remote: "),
        ({"repository": "/", "protected_paths": [""]}, "protected_paths.0: "),
    ],
)
def test_an_invalid_configuration_is_refused(config, message) -> None:
    with pytest.raises(configs.ConfigError, match=message):
        runtime.RunningPlugin(plugin.SelfEvolution(), config)


def test_only_the_top_directory_of_a_repository_is_accepted(repository) -> None:
    for path in (repository.path.parent, repository.path / "app"):
        with pytest.raises(configs.ConfigError, match="not a git repository"):
            runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(path)})


def test_a_missing_or_outdated_git_is_reported(repository, monkeypatch) -> None:
    monkeypatch.setattr(git, "MIN_VERSION", (99, 0))
    with pytest.raises(configs.ConfigError, match=r"requires git 2\.38 or newer"):
        configured(repository)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(configs.ConfigError, match="requires git"):
        configured(repository)


def test_a_repository_without_commits_is_reported(repository, tmp_path) -> None:
    bare = tmp_path / "empty"
    repository.git("init", "--quiet", str(bare))
    evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(bare)})
    with pytest.raises(toolbelt.ToolError, match="no commit 'HEAD'"):
        evolve("list_files")


def test_bare_shallow_and_linked_repositories_are_supported(repository, tmp_path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare"))
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    for name in ("bare", "shallow", "linked"):
        evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(tmp_path / name)})
        patched = evolve("patch_files", branch=f"evolve/{name}", message=MESSAGE, patches=[PATCH])
        comparison = evolve("compare_commits", base="HEAD", head=f"evolve/{name}")
        assert [commit["commit"] for commit in comparison["commits"]] == [patched["commit"]]


def test_shutdown_removes_the_plugins_own_directory(repository) -> None:
    evolve = configured(repository)
    scratch = pathlib.Path(evolve.plugin._repository.scratch)  # type: ignore[attr-defined]
    assert scratch.is_dir()
    evolve.stop()
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("message", "tools", "choice"),
    [
        ("Did the deploy fail?", ("check_deploy",), "required"),
        ("Please undo your last commit", ("compare_commits", "revert_commit", "check_deploy"), "auto"),
        (
            "Fix the greeting in your own code",
            tuple(tool.removeprefix("evolve__") for tool in toolkit.MEMBERS),
            "auto",
        ),
    ],
)
def test_messages_about_the_agents_own_code_focus_on_its_tools(message, tools, choice) -> None:
    focus = runtime.focus(toolkit.SelfEvolutionToolkit(), message)
    assert focus is not None
    assert {tool.removeprefix("evolve__") for tool in focus.active_tools} == set(tools)
    assert focus.tool_choice == choice


@pytest.mark.parametrize(
    "message", ["Fix my code", "Planning how to improve your code", "I deploy cakes", ""]
)
def test_other_messages_do_not_focus_on_its_tools(message) -> None:
    assert runtime.focus(toolkit.SelfEvolutionToolkit(), message) is None


def test_focus_and_policy_name_only_active_tools() -> None:
    kit = toolkit.SelfEvolutionToolkit()
    reading_only = (toolkit.READ_FILE,)
    context = contract.DirectiveContext(active_tools=reading_only, message="check the deploy")
    assert kit.directive(context) is None
    assert "change it" not in kit.policy(contract.PolicyContext(active_tools=reading_only))
    assert "change it" in kit.policy(contract.PolicyContext(active_tools=toolkit.MEMBERS))
