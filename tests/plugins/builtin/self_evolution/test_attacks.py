"""self_evolution: what a repository might contain, or another process do meanwhile, that must not harm."""

from __future__ import annotations

import hashlib
import os
import pathlib
import threading
import zlib

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution.attacking import MESSAGE, PATCH, evolve, repository, write
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


def test_a_branch_that_somebody_has_checked_out_is_left_alone(evolve, repository) -> None:
    repository.git("checkout", "--quiet", "-b", "evolve/x")
    with pytest.raises(toolbelt.ToolError, match="checked out"):
        write(evolve, "a")


def test_a_branch_that_stands_for_another_is_left_alone(evolve, repository) -> None:
    before = repository.git("rev-parse", "main")
    repository.git("symbolic-ref", "refs/heads/evolve/x", "refs/heads/main")
    with pytest.raises(toolbelt.ToolError, match="symbolic ref to another branch"):
        write(evolve, "a")
    assert repository.git("rev-parse", "main") == before


def test_a_branch_that_moves_meanwhile_keeps_what_it_got(evolve, repository, monkeypatch) -> None:
    repository.git("branch", "evolve/x", "main~1")
    made = writing.Writer.tree

    def and_then_moved(*arguments):
        repository.git("branch", "--force", "evolve/x", "main")
        return made(*arguments)

    monkeypatch.setattr(writing.Writer, "tree", and_then_moved)
    with pytest.raises(toolbelt.ToolError, match="moved in the meantime"):
        write(evolve, "a")
    assert repository.git("rev-parse", "evolve/x") == repository.git("rev-parse", "main")
    assert [entry["outcome"] for entry in evolve.runtime.state.values.values()] == ["refused"]


def test_a_name_that_another_branch_is_in_the_way_of_is_refused(evolve, repository) -> None:
    repository.git("branch", "evolve/x")
    with pytest.raises(toolbelt.ToolError, match="conflicts with another branch"):
        write(evolve, "a", branch="evolve/x/y")


def test_of_many_writes_at_once_none_is_lost(evolve, repository) -> None:
    threads = [threading.Thread(target=write, args=(evolve, f"file-{number}")) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert repository.git("ls-tree", "--name-only", "evolve/x").count("file-") == 6
    assert repository.git("rev-list", "--count", "main..evolve/x") == "6"


def test_nothing_that_the_repository_names_is_run(repository, tmp_path) -> None:
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
    # What follows is written as an attacker would: after it, no git is run here any more without a thought.
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

    evolve = runtime.Running(
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
    done = evolve("patch_files", branch="evolve/x", message=MESSAGE, patches=[PATCH])
    evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    evolve("compare_commits", base="main", head="evolve/x")
    evolve("revert_commit", commit=done["commit"], branch="evolve/x", reason="It is enough now.")
    assert evolve("commit_push", branch="evolve/x")["pushed"] is True
    assert "Says hello" in evolve("check_deploy", ref="evolve/x")["check"]["output"]
    assert not owned.exists()
    # The traps were set: git asked as its owner would ask it walks into them.
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
def test_an_address_that_runs_something_is_not_pushed_to(repository, tmp_path, address) -> None:
    owned = tmp_path / "owned"
    repository.git("config", "remote.origin.url", address.format(owned=owned))
    evolve = runtime.Running(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    found = evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    assert found["pushed"] is False
    assert "Pushing to the address" in found["note"]
    assert not owned.exists()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_hooks_of_a_repository_that_is_pushed_to_on_this_machine_are_not_run(
    repository, tmp_path, scheme
) -> None:
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
    evolve = runtime.Running(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    found = evolve("commit_push", branch="evolve/x", message=MESSAGE, files=[{"path": "a", "content": "b"}])
    assert found["pushed"] is True
    assert not owned.exists()
    repository.git("push", "--quiet", "origin", "main")
    assert owned.exists()


def test_a_branch_is_never_pushed_that_is_not_an_agents(repository, tmp_path) -> None:
    repository.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    evolve = runtime.Running(plugin.SelfEvolution(), {"repository": str(repository.path), "push": True})
    with pytest.raises(toolbelt.ToolError, match="protected"):
        evolve("commit_push", branch="main")
    with pytest.raises(toolbelt.ToolError, match="no branch evolve/gone"):
        evolve("commit_push", branch="evolve/gone")
    assert repository.git("ls-remote", "origin") == ""


def test_a_commit_crafted_to_write_elsewhere_is_not_copied_out(evolve, repository, tmp_path) -> None:
    """A tree that git itself would never make: an entry named ``..``, put together by hand."""
    blob = bytes.fromhex(repository.git("rev-parse", "HEAD:README.md"))
    evil = loose(repository.path, b"tree", b"100644 escaped\0" + blob)
    root = loose(repository.path, b"tree", b"40000 ..\0" + bytes.fromhex(evil))
    commit = repository.git("commit-tree", root, "-m", "Crafted")
    repository.git("branch", "crafted", commit)
    with pytest.raises(git.GitError, match=r"invalid path|Invalid path"):
        evolve("check_deploy", ref="crafted")
    assert not list(tmp_path.rglob("escaped"))
    assert evolve("list_files", ref="crafted")["entries"] == [{"path": "..", "kind": "directory"}]


def loose(repository: pathlib.Path, kind: bytes, data: bytes) -> str:
    """Write an object as git keeps it, unasked."""
    whole = kind + b" " + str(len(data)).encode() + b"\0" + data
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    place = repository / ".git" / "objects" / name[:2] / name[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zlib.compress(whole))
    return name


def test_git_that_hangs_is_stopped(evolve, monkeypatch) -> None:
    monkeypatch.setattr(git, "SECONDS", 0.2)
    monkeypatch.setattr(git, "_GIT", ["sh", "-c", "sleep 60", "git"])
    with pytest.raises(toolbelt.ToolError, match="was stopped after"):
        evolve("list_files")


def test_an_answer_that_would_be_huge_is_cut_or_refused(evolve, repository, monkeypatch) -> None:
    repository.write("long.txt", "line of text\n" * 70_000)
    repository.commit("Add much")
    found = evolve("compare_commits", base="main~1", head="main")
    assert len(found["diff"]) == 100_000
    assert "Use paths" in found["note"]
    assert len(evolve("read_file", path="long.txt", lines=2_000)["content"]) <= 100_000
    monkeypatch.setattr(git, "MAX_BYTES", 50)
    with pytest.raises(toolbelt.ToolError, match="The list is too long"):
        evolve("list_files", recursive=True)
