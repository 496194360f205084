"""Tests that self_evolution refuses malicious names of commits, branches and paths."""

from __future__ import annotations

import os

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution.attack_fixtures import MESSAGE, PATCH, evolve, repository, write
from toolbelt.plugins.builtin.self_evolution import plugin

__all__ = ["evolve", "repository"]


@pytest.mark.parametrize(
    "ref",
    [
        "--upload-pack=touch owned",
        "--output=owned",
        "-n1",
        "main..evolve",
        "main:README.md",
        "@{-1}",
        "main@{1}",
        "^main",
        "main^{tree}",
        ":/Begin",
        "HEAD~99999999",
        "main\nHEAD",
        "main\0",
        "main ",
        "../../outside",
        "refs/heads/../../config",
        "a.lock",
        "$(touch owned)",
        "`touch owned`",
        "main;touch owned",
    ],
)
def test_malicious_commit_names_are_refused(evolve, repository, ref) -> None:
    before = sorted(os.listdir(repository.path))
    for name, arguments in (
        ("read_file", {"path": "README.md", "ref": ref}),
        ("list_files", {"ref": ref}),
        ("search_code", {"query": "x", "ref": ref}),
        ("compare_commits", {"base": ref, "head": "main"}),
        ("compare_commits", {"base": "main", "head": ref}),
        ("check_deploy", {"ref": ref}),
        ("revert_commit", {"commit": ref, "branch": "evolve/x", "reason": "It is an attack."}),
    ):
        with pytest.raises(
            toolbelt.ToolError, match=r"is not a commit|is not a commit|There is no commit|do not fit"
        ):
            evolve.unchecked(name, **arguments)
    assert sorted(os.listdir(repository.path)) == before


@pytest.mark.parametrize(
    "branch",
    [
        "main",
        "evolve",
        "evolve/",
        "Evolve/x",
        "evolve/../main",
        "evolve/x..y",
        "evolve//x",
        "evolve/x.lock",
        "evolve/.x",
        "evolve/-x",
        "evolve/x~1",
        "evolve/@{1}",
        "evolve/x:main",
        "refs/heads/main",
        "refs/heads/evolve/x",
        "--delete",
        "HEAD",
        "evolve/x\nmain",
        "evolve/" + "x" * 200,
    ],
)
def test_branches_outside_the_prefix_are_not_written_to(evolve, repository, branch) -> None:
    before = repository.git("for-each-ref")
    commit = repository.git("rev-parse", "HEAD")
    for name, arguments in (
        ("patch_files", {"branch": branch, "message": MESSAGE, "patches": [PATCH]}),
        ("commit_push", {"branch": branch, "message": MESSAGE, "files": [{"path": "a", "content": "b"}]}),
        ("revert_commit", {"commit": commit, "branch": branch, "reason": "It is an attack."}),
    ):
        with pytest.raises(toolbelt.ToolError, match=r"protected|not a valid branch name|do not fit"):
            evolve.unchecked(name, **arguments)
    assert repository.git("for-each-ref") == before
    assert evolve.runtime.state.values == {}


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "app/../../outside",
        "/etc/passwd",
        "app\\..\\outside",
        "a\0b",
        "a\nb",
        "\ud800",
        "app/",
        ".",
        "x" * 401,
    ],
)
def test_no_path_leaves_the_repository(evolve, path) -> None:
    with pytest.raises(toolbelt.ToolError):
        evolve.unchecked("read_file", path=path)
    for arguments in (
        {"files": [{"path": path, "content": "x"}]},
        {"files": [{"path": path, "delete": True}]},
    ):
        with pytest.raises(toolbelt.ToolError):
            evolve.unchecked("commit_push", branch="evolve/x", message=MESSAGE, **arguments)


@pytest.mark.parametrize(
    "path", ["--output=owned", "-rf", ":(top)README.md", ":!README.md", "*", "[R]EADME.md"]
)
def test_paths_are_not_read_as_options_or_patterns(evolve, repository, path) -> None:
    before = sorted(os.listdir(repository.path))
    with pytest.raises(toolbelt.ToolError, match="There is no"):
        evolve("read_file", path=path)
    with pytest.raises(toolbelt.ToolError, match="There is no"):
        evolve("list_files", path=path)
    assert evolve("search_code", query="o", path=path)["files_searched"] == 0
    assert evolve("compare_commits", base="main~1", head="main", paths=[path])["files"] == []
    assert sorted(os.listdir(repository.path)) == before


@pytest.mark.parametrize(
    "path",
    [
        "secrets/key.txt",
        "app/secrets/new.txt",
        "Secrets/key.txt",
        "secrets",
        "ſecrets/key.txt",
        "ｓecrets/key.txt",
        "sec\u200crets/key.txt",
        "secrets./key.txt",
        "secrets /key.txt",
        "SECRE~1/key.txt",
        "deploy/run.sh",
        "deploy/deeper/new.sh",
        "DEPLOY/run.sh",
        "./deploy//run.sh",
        "keys/server.PEM",
        "docs/legal/terms.md",
        ".git/config",
        ".GIT/hooks/post-commit",
        "app/.git/config",
        ".g\u200cit/config",
        ".g\u034fit/config",
        ".git\ufe0f/config",
        "git~1/config",
        ".git./config",
        ".git::$INDEX_ALLOCATION/config",
    ],
)
def test_protected_paths_are_not_written_in_any_spelling(evolve, repository, path) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"protected by the operator|cannot be written"):
        write(evolve, path)
    with pytest.raises(toolbelt.ToolError, match=r"protected by the operator|cannot be written"):
        evolve(
            "patch_files",
            branch="evolve/x",
            message=MESSAGE,
            patches=[PATCH, {"path": path, "old": "a", "new": "b"}],
        )
    assert repository.git("branch", "--list", "evolve/*") == ""


def test_ci_and_git_configuration_files_are_protected_by_default(repository) -> None:
    evolve = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path)})
    for path in (".github/workflows/ci.yml", ".gitattributes", "app/.gitmodules"):
        with pytest.raises(toolbelt.ToolError, match="protected by the operator"):
            write(evolve, path)
    evolve = runtime.RunningPlugin(
        plugin.SelfEvolution(), {"repository": str(repository.path), "protected_paths": []}
    )
    write(evolve, ".github/workflows/ci.yml")


def test_a_revert_does_not_change_protected_paths(evolve, repository) -> None:
    commit = repository.git("rev-parse", "HEAD")
    with pytest.raises(toolbelt.ToolError, match="protected by the operator"):
        evolve("revert_commit", commit=commit, branch="evolve/x", reason="It is in the way.")
    assert repository.git("branch", "--list", "evolve/*") == ""


def test_every_changed_path_of_a_commit_is_checked_for_protection(evolve, repository, monkeypatch) -> None:
    monkeypatch.setattr(
        plugin.SelfEvolution, "_replace", lambda *_: {"secrets/key.txt": ("100644", b"owned")}
    )
    with pytest.raises(toolbelt.ToolError, match="protected by the operator"):
        write(evolve, "harmless")
    assert repository.git("branch", "--list", "evolve/*") == ""


@pytest.mark.parametrize("message", ["\n" * 10, "a zero\0 byte", "a bit of \x1b[31mred", "half of it \ud800"])
def test_an_invalid_commit_message_is_refused(evolve, message) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"commit message with a subject|do not fit"):
        evolve.unchecked(
            "commit_push", branch="evolve/x", message=message, files=[{"path": "a", "content": "b"}]
        )


def test_a_commit_message_cannot_impersonate_another_agent(evolve, repository) -> None:
    evolve(
        "patch_files",
        branch="evolve/x",
        message="Greet the world\n\nToolbelt-Agent: somebody-else",
        patches=[PATCH],
    )
    log_entry = repository.git(
        "log", "-1", "--format=%an/%(trailers:key=Toolbelt-Agent,valueonly)", "evolve/x"
    )
    assert log_entry == "ada (agent)/ada"


def test_line_breaks_in_agent_and_session_names_add_no_trailers(evolve, repository) -> None:
    evolve.runtime.call = toolbelt.CallContext(agent="<x>\nevil", session="s\nToolbelt-Agent: boss\x1b")
    write(evolve, "a")
    log_entry = repository.git(
        "log", "-1", "--format=%an%n%(trailers:key=Toolbelt-Agent,valueonly)", "evolve/x"
    )
    assert log_entry.splitlines() == ["x evil (agent)", "x evil"]
