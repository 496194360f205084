"""Tests of self_evolution's changes to a real repository, on branches of the agent's own."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import git, plugin, processes

MESSAGE = "Greet the world\n\nBecause it is there."
PATCH = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}


def configured(repository: repositories.Repository, **config: object) -> runtime.RunningPlugin:
    return runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), **config})


def test_a_patch_of_several_files_is_a_single_commit_on_a_new_branch(evolve, repository) -> None:
    before = repository.git("rev-parse", "main")
    repository.write("README.md", "somebody is working here")
    result = evolve(
        "patch_files",
        branch="evolve/greet",
        message=MESSAGE,
        patches=[
            PATCH,
            {"path": "README.md", "old": "App", "new": "Application"},
            {**PATCH, "old": "import os", "new": "import sys"},
        ],
    )
    assert result == {
        "branch": "evolve/greet",
        "commit": repository.git("rev-parse", "evolve/greet"),
        "before": before,
        "paths": ["README.md", "app/main.py"],
        "created": True,
    }
    assert repository.at("evolve/greet", "app/main.py").startswith("import sys")
    assert "Hello, world" in repository.at("evolve/greet", "app/main.py")
    assert repository.git("rev-parse", "evolve/greet~1") == before == repository.git("rev-parse", "main")
    assert (repository.path / "README.md").read_text() == "somebody is working here"
    assert repository.git("fsck", "--strict", "--no-dangling") == ""


def test_the_commit_names_its_agent_and_session(evolve, repository) -> None:
    evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    log_entry = repository.git("log", "-1", "--format=%an|%ae|%cn|%s|%(trailers:unfold)", "evolve/greet")
    assert log_entry.split("|")[:4] == [
        "ada (agent)",
        "agent@toolbelt.invalid",
        "Toolbelt",
        "Greet the world",
    ]
    assert "Toolbelt-Agent: ada\nToolbelt-Session: s-1" in log_entry


def test_every_write_is_recorded_and_logged(evolve, repository) -> None:
    result = evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    ((key, entry),) = evolve.runtime.state.values.items()
    assert key == f"write/{entry['at']}/{result['commit'][:12]}"
    assert {name: value for name, value in entry.items() if name != "at"} == {
        "agent": "ada",
        "session": "s-1",
        "request_id": "",
        "tool": "evolve__patch_files",
        "branch": "evolve/greet",
        "before": "",
        "commit": result["commit"],
        "paths": ["app/main.py"],
        "subject": "Greet the world",
        "outcome": "written",
    }
    assert evolve.runtime.log.events[0][:2] == ("info", "self-evolution write")


def test_a_write_that_cannot_be_recorded_is_not_made(evolve, repository) -> None:
    evolve.runtime.state.broken = True
    with pytest.raises(ConnectionError):
        evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    assert repository.git("branch", "--list", "evolve/*") == ""


@pytest.mark.parametrize(
    ("patches", "reason"),
    [
        ([PATCH, {"path": "README.md", "old": "gone", "new": ""}], "does not contain the old text"),
        ([{"path": "README.md", "old": "l", "new": "L"}], "2 times, not 1"),
        ([PATCH, PATCH], "does not contain the old text"),
        ([{**PATCH, "new": PATCH["old"]}], "are the same"),
        ([{**PATCH, "path": "gone.py"}], r"There is no gone\.py"),
        ([{**PATCH, "new": "\ud800"}], "Input should be a valid string"),
        ([{**PATCH, "new": "é" * 600_000}], "at most 1000000"),
        ([PATCH, {**PATCH, "old": PATCH["new"], "new": PATCH["old"]}], "Nothing to commit"),
    ],
)
def test_a_patch_that_does_not_apply_changes_nothing(evolve, repository, patches, reason) -> None:
    if patches == [PATCH, PATCH]:
        patches = [{**PATCH, "new": "gone"}, PATCH]
    with pytest.raises(toolbelt.ToolError, match=reason):
        evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=patches)
    assert repository.git("branch", "--list", "evolve/*") == ""
    assert evolve.runtime.state.values == {}


def test_later_patches_continue_from_the_head_of_the_branch(evolve, repository) -> None:
    first = evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    second = evolve(
        "patch_files",
        branch="evolve/greet",
        message=MESSAGE,
        head=first["commit"][:10],
        patches=[{**PATCH, "old": "world", "new": "moon"}],
    )
    assert (second["before"], second["created"]) == (first["commit"], False)
    with pytest.raises(toolbelt.ToolError, match="Read it again"):
        evolve("patch_files", branch="evolve/greet", message=MESSAGE, head=first["commit"], patches=[PATCH])


def test_files_are_added_replaced_and_deleted_in_a_single_commit(evolve, repository) -> None:
    (repository.path / "run").write_text("#!/bin/sh\n")
    (repository.path / "run").chmod(0o755)
    repository.commit("Add a program")
    result = evolve(
        "commit_push",
        branch="evolve/files",
        message=MESSAGE,
        files=[
            {"path": "docs/new.md", "content": "Ünïcode\n"},
            {"path": "run", "content": "#!/bin/bash\n"},
            {"path": "README.md", "delete": True},
        ],
    )
    assert result["paths"] == ["README.md", "docs/new.md", "run"]
    assert result["pushed"] is False
    assert repository.git("ls-tree", "-r", "--name-only", "evolve/files").split() == [
        "app/main.py",
        "docs/new.md",
        "run",
    ]
    assert repository.git("ls-tree", "evolve/files", "run").startswith("100755")
    assert repository.at("evolve/files", "docs/new.md") == "Ünïcode"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ({"path": "README.md"}, "either content or delete"),
        ({"path": "README.md", "content": "x", "delete": True}, "either content or delete"),
        ({"path": "gone", "delete": True}, "gone does not exist"),
        ({"path": "app", "content": "x"}, "app is a directory"),
        ({"path": "README.md/below", "content": "x"}, r"README\.md is a file: nothing can be below it"),
    ],
)
def test_invalid_file_changes_are_refused(evolve, file, reason) -> None:
    with pytest.raises(toolbelt.ToolError, match=reason):
        evolve("commit_push", branch="evolve/files", message=MESSAGE, files=[file])


def test_a_file_listed_twice_is_refused(evolve) -> None:
    with pytest.raises(toolbelt.ToolError, match="listed twice"):
        evolve(
            "commit_push",
            branch="evolve/files",
            message=MESSAGE,
            files=[{"path": "a", "content": "1"}, {"path": "./a", "content": "2"}],
        )


def test_a_branch_is_pushed_if_the_operator_allows_it(repository, tmp_path) -> None:
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    evolve = configured(repository, push=True)
    result = evolve(
        "commit_push", branch="evolve/files", message=MESSAGE, files=[{"path": "a", "content": "1"}]
    )
    assert result["pushed"] is True
    assert repository.git("ls-remote", "origin", "refs/heads/evolve/files").split()[0] == result["commit"]
    assert evolve("check_deploy", ref="evolve/files")["pushed"] is True
    outcomes = [
        (key.split("/")[0], entry["outcome"]) for key, entry in sorted(evolve.runtime.state.values.items())
    ]
    assert outcomes == [("push", "written"), ("write", "written")]
    evolve("patch_files", branch="evolve/files", message=MESSAGE, patches=[PATCH])
    assert evolve("check_deploy", ref="evolve/files")["pushed"] is False
    assert evolve("commit_push", branch="evolve/files")["pushed"] is True
    # A commit that another developer pushed is not overwritten.
    repository.git("push", "--quiet", "--force", "origin", "main:evolve/files")
    evolve(
        "patch_files",
        branch="evolve/files",
        message=MESSAGE,
        patches=[{**PATCH, "old": "world", "new": "you"}],
    )
    repository.git("commit", "--quiet", "--allow-empty", "-m", "Elsewhere")
    repository.git("push", "--quiet", "--force", "origin", "main:evolve/files")
    refused = evolve("commit_push", branch="evolve/files")
    assert refused["pushed"] is False
    assert "refused the push" in refused["note"]


def test_a_branch_is_not_pushed_unless_the_operator_allows_it(evolve, repository, tmp_path) -> None:
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    result = evolve(
        "commit_push", branch="evolve/files", message=MESSAGE, files=[{"path": "a", "content": "1"}]
    )
    assert "does not allow" in result["note"]
    assert repository.git("ls-remote", "origin") == ""
    with pytest.raises(toolbelt.ToolError, match="does not allow pushing"):
        evolve("commit_push", branch="evolve/files")


def test_a_revert_undoes_a_commit_with_a_new_commit(evolve, repository) -> None:
    first = evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    evolve(
        "patch_files",
        branch="evolve/greet",
        message=MESSAGE,
        patches=[{**PATCH, "old": "import os", "new": "import sys"}],
    )
    result = evolve(
        "revert_commit", commit=first["commit"], branch="evolve/greet", reason="It greets too many."
    )
    assert result["paths"] == ["app/main.py"]
    text = repository.at("evolve/greet", "app/main.py")
    assert "'Hello'" in text
    assert "import sys" in text
    body = repository.git("log", "-1", "--format=%B", "evolve/greet")
    assert body.startswith('Revert "Greet the world"\n\nThis reverts commit')
    assert "It greets too many." in body


def test_a_revert_restores_deleted_binary_and_executable_files(evolve, repository) -> None:
    repository.git("checkout", "--quiet", "-b", "work")
    repository.write("picture", b"\x89PNG\0\1")
    (repository.path / "run").write_text("#!/bin/sh\n")
    (repository.path / "run").chmod(0o755)
    repository.commit("Add a picture and a program")
    before = repository.git("rev-parse", "HEAD^{tree}")
    for path in ("picture", "run", "README.md"):
        (repository.path / path).unlink()
    repository.write("new.md", "new\n")
    change = repository.commit("Delete them")
    repository.git("branch", "evolve/files")
    result = evolve("revert_commit", commit=change, branch="evolve/files", reason="They are needed.")
    assert result["paths"] == ["README.md", "new.md", "picture", "run"]
    assert repository.git("rev-parse", "evolve/files^{tree}") == before


def test_a_commit_that_is_too_large_is_not_reverted(evolve, repository, monkeypatch) -> None:
    first = evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    objects = git.Repository.objects

    def cut(self: git.Repository, *words: str, **options: Any) -> processes.Finished:
        finished = objects(self, *words, **options)
        return dataclasses.replace(finished, is_cut="diff-tree" in words)

    monkeypatch.setattr(git.Repository, "objects", cut)
    with pytest.raises(toolbelt.ToolError, match="is too large to be reverted"):
        evolve("revert_commit", commit=first["commit"], branch="evolve/greet", reason="It greets too many.")
    assert repository.git("rev-parse", "evolve/greet") == first["commit"]


def test_a_revert_that_conflicts_changes_nothing(evolve, repository) -> None:
    first = evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    second = evolve(
        "patch_files",
        branch="evolve/greet",
        message=MESSAGE,
        patches=[{**PATCH, "old": "world", "new": "you"}],
    )
    with pytest.raises(toolbelt.ToolError, match=r"same lines of app/main\.py"):
        evolve("revert_commit", commit=first["commit"], branch="evolve/greet", reason="It greets too many.")
    assert repository.git("rev-parse", "evolve/greet") == second["commit"]


def test_commits_that_cannot_be_reverted_are_refused(evolve, repository) -> None:
    root = repository.git("rev-list", "--max-parents=0", "main")
    repository.git("checkout", "--quiet", "-b", "side", "main~1")
    repository.write("side.md", "side")
    side = repository.commit("Side")
    repository.git("checkout", "--quiet", "main")
    for commit, reason in ((root, "the first commit"), (side, "is not on")):
        with pytest.raises(toolbelt.ToolError, match=reason):
            evolve("revert_commit", commit=commit, branch="evolve/x", reason="It was a mistake.")
    repository.git("merge", "--quiet", "--no-ff", "-m", "Merge", "side")
    with pytest.raises(toolbelt.ToolError, match="is a merge"):
        evolve(
            "revert_commit",
            commit=repository.git("rev-parse", "HEAD"),
            branch="evolve/x",
            reason="It was a mistake.",
        )
