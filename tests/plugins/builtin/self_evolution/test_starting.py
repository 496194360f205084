"""self_evolution: its configuration, its toolkit, and repositories of every kind."""

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


def configured(repository: repositories.Repository, **config: object) -> runtime.Running:
    return runtime.Running(plugin.SelfEvolution(), {"repository": str(repository.path), **config})


def test_the_plugin_is_sound() -> None:
    runtime.assert_sound(plugin.SelfEvolution())


def test_it_has_the_seeds_eight_members() -> None:
    names = {name.removeprefix("evolve__") for name in toolkit.SelfEvolutionToolkit.members}
    assert names == {
        *("read_file", "list_files", "search_code", "patch_files"),
        *("commit_push", "compare_commits", "revert_commit", "check_deploy"),
    }


@pytest.mark.parametrize(
    ("config", "said"),
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
def test_without_a_sound_configuration_it_does_not_start(config, said) -> None:
    with pytest.raises(configs.ConfigError, match=said):
        runtime.Running(plugin.SelfEvolution(), config)


def test_a_directory_that_is_no_repository_is_not_one_by_what_is_above_it(repository) -> None:
    for path in (repository.path.parent, repository.path / "app"):
        with pytest.raises(configs.ConfigError, match="not a git repository"):
            runtime.Running(plugin.SelfEvolution(), {"repository": str(path)})


def test_a_git_that_is_missing_or_too_old_is_named(repository, monkeypatch) -> None:
    monkeypatch.setattr(git, "MIN_VERSION", (99, 0))
    with pytest.raises(configs.ConfigError, match=r"requires git 2\.38 or newer"):
        configured(repository)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(configs.ConfigError, match="requires git"):
        configured(repository)


def test_a_repository_without_commits_says_so(repository, tmp_path) -> None:
    bare = tmp_path / "empty"
    repository.git("init", "--quiet", str(bare))
    evolve = runtime.Running(plugin.SelfEvolution(), {"repository": str(bare)})
    with pytest.raises(toolbelt.ToolError, match="no commit 'HEAD'"):
        evolve("list_files")


def test_bare_shallow_and_linked_repositories_work_too(repository, tmp_path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare"))
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    for name in ("bare", "shallow", "linked"):
        evolve = runtime.Running(plugin.SelfEvolution(), {"repository": str(tmp_path / name)})
        done = evolve("patch_files", branch=f"evolve/{name}", message=MESSAGE, patches=[PATCH])
        found = evolve("compare_commits", base="HEAD", head=f"evolve/{name}")
        assert [one["commit"] for one in found["commits"]] == [done["commit"]]


def test_nothing_of_ours_stays_behind(repository) -> None:
    evolve = configured(repository)
    own = pathlib.Path(evolve.plugin._repository.own)  # type: ignore[attr-defined]
    assert own.is_dir()
    evolve.stop()
    assert not own.exists()


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
def test_messages_about_itself_focus_on_its_tools(message, tools, choice) -> None:
    found = runtime.focus(toolkit.SelfEvolutionToolkit(), message)
    assert found is not None
    assert {tool.removeprefix("evolve__") for tool in found.active_tools} == set(tools)
    assert found.tool_choice == choice


@pytest.mark.parametrize(
    "message", ["Fix my code", "Planning how to improve your code", "I deploy cakes", ""]
)
def test_other_messages_do_not(message) -> None:
    assert runtime.focus(toolkit.SelfEvolutionToolkit(), message) is None


def test_focus_and_policy_name_only_what_is_active() -> None:
    kit = toolkit.SelfEvolutionToolkit()
    reading_only = (toolkit.READ_FILE,)
    asked = contract.DirectiveContext(active_tools=reading_only, message="check the deploy")
    assert kit.directive(asked) is None
    assert "change it" not in kit.policy(contract.PolicyContext(active_tools=reading_only))
    assert "change it" in kit.policy(contract.PolicyContext(active_tools=toolkit.MEMBERS))
