"""Tests that neither the contents of a repository nor concurrent processes make self_evolution do harm."""

from __future__ import annotations

import hashlib
import os
import pathlib
import threading
import zlib

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution.attack_fixtures import MESSAGE, PATCH, evolve, repository, write
from toolbelt.plugins.builtin.self_evolution import git, plugin, writing

__all__ = ["evolve", "repository"]


def test_a_link_in_the_repository_is_not_followed_or_replaced(evolve, repository, tmp_path) -> None:
    (tmp_path / "outside").mkdir()
    (repository.path / "out").symlink_to("../outside")
    repository.commit("Add a link")
    with pytest.raises(toolbelt.ToolError, match="There is no out/x"):
        evolve("read_file", path="out/x")
    with pytest.raises(toolbelt.ToolError, match="out is a link: nothing can be below it"):
        write(evolve, "out/x")
    with pytest.raises(toolbelt.ToolError, match="out is a link, not a file"):
        write(evolve, "out")
    assert os.listdir(tmp_path / "outside") == []


def test_a_checked_out_branch_is_not_written_to(evolve, repository) -> None:
    repository.git("checkout", "--quiet", "-b", "evolve/x")
    with pytest.raises(toolbelt.ToolError, match="checked out"):
        write(evolve, "a")


def test_a_symbolic_ref_is_not_written_to(evolve, repository) -> None:
    before = repository.git("rev-parse", "main")
    repository.git("symbolic-ref", "refs/heads/evolve/x", "refs/heads/main")
    with pytest.raises(toolbelt.ToolError, match="symbolic ref to another branch"):
        write(evolve, "a")
    assert repository.git("rev-parse", "main") == before


def test_a_branch_that_moves_during_a_write_is_not_overwritten(evolve, repository, monkeypatch) -> None:
    repository.git("branch", "evolve/x", "main~1")
    original_tree = writing.Writer.tree

    def move_and_write(*arguments):
        repository.git("branch", "--force", "evolve/x", "main")
        return original_tree(*arguments)

    monkeypatch.setattr(writing.Writer, "tree", move_and_write)
    with pytest.raises(toolbelt.ToolError, match="moved in the meantime"):
        write(evolve, "a")
    assert repository.git("rev-parse", "evolve/x") == repository.git("rev-parse", "main")
    assert [entry["outcome"] for entry in evolve.runtime.state.values.values()] == ["refused"]


def test_a_branch_name_that_conflicts_with_another_branch_is_refused(evolve, repository) -> None:
    repository.git("branch", "evolve/x")
    with pytest.raises(toolbelt.ToolError, match="conflicts with another branch"):
        write(evolve, "a", branch="evolve/x/y")


def test_concurrent_writes_are_all_committed(evolve, repository) -> None:
    threads = [threading.Thread(target=write, args=(evolve, f"file-{number}")) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert repository.git("ls-tree", "--name-only", "evolve/x").count("file-") == 6
    assert repository.git("rev-list", "--count", "main..evolve/x") == "6"


def test_programs_named_in_the_repository_are_not_run(repository, tmp_path) -> None:
    owned = tmp_path / "owned"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {owned}\ncat\n')
    program.chmod(0o755)
    hooks = repository.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in (
        *(
            "pre-commit",
            "commit-msg",
            "prepare-commit-msg",
            "post-commit",
            "reference-transaction",
            "pre-push",
        ),
        *(
            "post-index-change",
            "post-checkout",
            "pre-merge-commit",
            "post-merge",
            "post-rewrite",
            "pre-auto-gc",
        ),
    ):
        (hooks / hook).symlink_to(program)
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    # The configuration below is an attacker's: from here on, a plain git command would run the program.
    repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    repository.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    repository.git("-c", "core.hooksPath=/dev/null", "add", "--all")
    repository.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "Attributes")
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
        *("core.alternateRefsCommand", "diff.external", "diff.evil.textconv", "diff.evil.command"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver"),
        *("gpg.program", "credential.helper", "alias.log", "pager.log", "uploadpack.packObjectsHook"),
        *("remote.origin.receivepack", "remote.origin.uploadpack", "sequence.editor", "pager.diff-tree"),
        *("trailer.x.command", "gpg.ssh.program", "interactive.diffFilter", "remote.origin.vcs"),
    ):
        repository.git("config", key, str(program))
    for key in ("commit.gpgSign", "push.gpgSign", "log.showSignature", "filter.evil.required"):
        repository.git("config", key, "true")
    owned.unlink(missing_ok=True)

    evolve = runtime.RunningPlugin(
        plugin.SelfEvolution(),
        {
            "repository": str(repository.path),
            "protected_paths": [],
            "check_command": ["cat", "README.md"],
            "push": True,
        },
    )
    evolve("read_file", path="README.md")
    evolve("list_files", recursive=True)
    evolve("search_code", query="hello")
    patched = evolve("patch_files", branch="evolve/x", message=MESSAGE, patches=[PATCH])
    evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    evolve("compare_commits", base="main", head="evolve/x")
    evolve("revert_commit", commit=patched["commit"], branch="evolve/x", reason="It is enough now.")
    assert evolve("commit_push", branch="evolve/x")["pushed"] is True
    assert "Says hello" in evolve("check_deploy", ref="evolve/x")["check"]["output"]
    assert not owned.exists()
    # The configuration is effective: a plain git command runs the program.
    repository.git("update-ref", "refs/heads/armed", "main")
    assert "reference-transaction" in owned.read_text()


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c 'touch {owned}'",
        "ext::touch%20{owned}",
        "-oProxyCommand=touch {owned}",
        "ssh://-oProxyCommand=touch {owned}/x",
        "--upload-pack=touch {owned}",
        "fd::17",
        "git://example.com/x",
        "http://example.com/x",
        "relative/path",
    ],
)
def test_an_address_that_would_run_a_program_is_not_pushed_to(repository, tmp_path, address) -> None:
    owned = tmp_path / "owned"
    repository.git("config", "remote.origin.url", address.format(owned=owned))
    evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    result = evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    assert result["pushed"] is False
    assert "Pushing to the address" in result["note"]
    assert not owned.exists()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_hooks_of_a_local_remote_are_not_run(repository, tmp_path, scheme) -> None:
    owned = tmp_path / "owned"
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    hooks = tmp_path / "remote.git" / "hooks"
    for hook in (
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
        "proc-receive",
    ):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {owned}\n")
        (hooks / hook).chmod(0o755)
    repository.git("config", "remote.origin.url", f"{scheme}{tmp_path / 'remote.git'}")
    evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    result = evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    assert result["pushed"] is True
    assert not owned.exists()
    repository.git("push", "--quiet", "origin", "main")
    assert owned.exists()


def test_only_branches_of_agents_are_pushed(repository, tmp_path) -> None:
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    with pytest.raises(toolbelt.ToolError, match="protected"):
        evolve("commit_push", branch="main")
    with pytest.raises(toolbelt.ToolError, match="no branch evolve/gone"):
        evolve("commit_push", branch="evolve/gone")
    assert repository.git("ls-remote", "origin") == ""


def test_a_commit_with_paths_outside_the_repository_is_not_checked_out(evolve, repository, tmp_path) -> None:
    """The tree has an entry named ``..``, which git itself would never create."""
    blob = bytes.fromhex(repository.git("rev-parse", "HEAD:README.md"))
    evil = write_loose_object(repository.path, b"tree", b"100644 escaped\0" + blob)
    root = write_loose_object(repository.path, b"tree", b"40000 ..\0" + bytes.fromhex(evil))
    commit = repository.git("commit-tree", root, "-m", "Crafted")
    repository.git("branch", "crafted", commit)
    with pytest.raises(git.GitError, match=r"invalid path|Invalid path"):
        evolve("check_deploy", ref="crafted")
    assert not list(tmp_path.rglob("escaped"))
    assert evolve("list_files", ref="crafted")["entries"] == [{"path": "..", "kind": "directory"}]


def write_loose_object(repository: pathlib.Path, kind: bytes, data: bytes) -> str:
    """Write a loose object directly, without git's checks, and return its name."""
    content = kind + b" " + str(len(data)).encode() + b"\0" + data
    name = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    file = repository / ".git" / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(content))
    return name


def test_a_git_process_that_hangs_is_stopped(evolve, monkeypatch) -> None:
    monkeypatch.setattr(git, "SECONDS", 0.2)
    monkeypatch.setattr(git, "_GIT", ["sh", "-c", "sleep 60", "git"])
    with pytest.raises(toolbelt.ToolError, match="was stopped after"):
        evolve("list_files")


def test_a_result_that_is_too_large_is_truncated_or_refused(evolve, repository, monkeypatch) -> None:
    repository.write("long.txt", "line of text\n" * 70_000)
    repository.commit("Add much")
    result = evolve("compare_commits", base="main~1", head="main")
    assert len(result["diff"]) == 100_000
    assert "Use paths" in result["note"]
    assert len(evolve("read_file", path="long.txt", lines=2_000)["content"]) <= 100_000
    monkeypatch.setattr(git, "MAX_BYTES", 50)
    with pytest.raises(toolbelt.ToolError, match="The list is too long"):
        evolve("list_files", recursive=True)
