"""Tests of self_evolution on a real repository: reading, listing, searching, comparing and checking commits."""

from __future__ import annotations

import sys

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import commits, plugin

MESSAGE = "Greet the world\n\nBecause it is there."
PATCH = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}


def configured(repository: repositories.Repository, **config: object) -> runtime.RunningPlugin:
    return runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path), **config})


def test_a_file_is_read_from_a_commit_and_not_from_the_work_tree(evolve, repository) -> None:
    repository.write("README.md", "not committed")
    result = evolve("read_file", path="README.md")
    assert result["content"] == "# App\n\nSays hello to everybody.\n"
    assert result["commit"] == repository.git("rev-parse", "HEAD")
    assert evolve("read_file", path="README.md", ref="main~1", first_line=3)["content"] == "Says hello.\n"
    short = result["commit"][:8]
    assert evolve("read_file", path="./app//main.py", ref=short, lines=1)["content"] == "import os\n"


def test_unreadable_files_are_refused_with_the_reason(evolve, repository) -> None:
    repository.write("binary", b"\0\1")
    repository.write("latin", b"caf\xe9")
    repository.write("large", "x" * 1_000_001)
    (repository.path / "link").symlink_to("/etc/passwd")
    repository.commit("Add what is no text")
    for path, message in (
        ("binary", "not UTF-8 text"),
        ("latin", "not UTF-8 text"),
        ("large", "1000001 bytes"),
        ("link", "a link"),
        ("app", "a directory"),
        ("gone", "There is no gone"),
        ("./", "Name a file"),
    ):
        with pytest.raises(toolbelt.ToolError, match=message):
            evolve("read_file", path=path)
    with pytest.raises(toolbelt.ToolError, match="no line 9"):
        evolve("read_file", path="README.md", first_line=9)
    with pytest.raises(toolbelt.ToolError, match="no commit 'gone'"):
        evolve("read_file", path="README.md", ref="gone")


def test_files_of_a_commit_are_listed(evolve) -> None:
    assert evolve("list_files")["entries"] == [
        {"path": "README.md", "kind": "file", "bytes": 32},
        {"path": "app", "kind": "directory"},
    ]
    assert [entry["path"] for entry in evolve("list_files", recursive=True)["entries"]] == [
        "README.md",
        "app/main.py",
    ]
    assert evolve("list_files", path="app/")["entries"] == [
        {"path": "app/main.py", "kind": "file", "bytes": 44}
    ]
    with pytest.raises(toolbelt.ToolError, match="no directory gone"):
        evolve("list_files", path="gone")


def test_code_of_a_commit_is_searched(evolve, repository, monkeypatch) -> None:
    result = evolve("search_code", query="hello")
    assert [(match["path"], match["line"]) for match in result["matches"]] == [
        ("README.md", 3),
        ("app/main.py", 4),
    ]
    assert result["complete"] is True
    assert evolve("search_code", query=r"def \w+\(", regex=True)["matches"][0]["text"] == "def hello():"
    assert evolve("search_code", query="hello", path="app")["files_searched"] == 1
    assert evolve("search_code", query="everybody", ref="main~1")["matches"] == []
    assert evolve("search_code", query="hello", limit=1)["stopped_by"] == "1 matches"
    with pytest.raises(toolbelt.ToolError, match="not a valid RE2 expression"):
        evolve("search_code", query="(", regex=True)
    monkeypatch.setattr(commits, "MAX_SEARCH_SECONDS", -1.0)
    assert evolve("search_code", query="hello")["complete"] is False


def test_a_search_stops_at_the_size_limit_and_names_it(evolve, repository, monkeypatch) -> None:
    for number in range(40):
        repository.write(f"many/{number:02}", f"needle {number}\n" + "x" * number)
    repository.write("many/empty", "")
    repository.commit("Many")
    assert len(evolve("search_code", query="needle", path="many")["matches"]) == 40
    monkeypatch.setattr(commits, "MAX_SEARCHED_BYTES", 100)
    result = evolve("search_code", query="needle", path="many")
    assert 0 < len(result["matches"]) < 40
    assert "files with" in result["stopped_by"]


def test_commits_are_compared_from_their_merge_base(evolve, repository) -> None:
    evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    repository.write("other.md", "other\n")
    repository.commit("Go on elsewhere")
    result = evolve("compare_commits", base="main", head="evolve/greet")
    assert [commit["subject"] for commit in result["commits"]] == ["Greet the world"]
    assert result["files"] == [{"path": "app/main.py", "added": 1, "removed": 1}]
    assert "+    return 'Hello, world'" in result["diff"]
    assert evolve("compare_commits", base="main", head="evolve/greet", paths=["other.md"])["diff"] == ""
    assert evolve("compare_commits", base="main", head="main")["commits"] == []


def test_without_a_check_command_the_branch_status_is_returned(evolve, repository) -> None:
    evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    result = evolve("check_deploy", ref="evolve/greet")
    assert (result["ahead"], result["behind"], result["merged"], result["check"]) == (1, 0, False, None)
    repository.git("merge", "--quiet", "evolve/greet")
    assert evolve("check_deploy", ref="evolve/greet")["merged"] is True


def test_the_check_command_runs_on_a_copy_of_the_commit(repository, monkeypatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    script = "import os, app.main; print(sorted(os.environ)); raise SystemExit(app.main.hello() != 'Hello')"
    evolve = configured(repository, check_command=[sys.executable, "-c", script])
    assert evolve("check_deploy")["check"]["passed"] is True
    evolve("patch_files", branch="evolve/greet", message=MESSAGE, patches=[PATCH])
    result = evolve("check_deploy", ref="evolve/greet")["check"]
    assert (result["passed"], result["exit_code"]) == (False, 1)
    assert "SECRET_KEY" not in result["output"]
    assert "check" not in evolve("check_deploy", run=False)
    assert repository.git("status", "--porcelain") == ""


def test_a_check_is_limited_in_time_and_output(repository, tmp_path) -> None:
    evolve = configured(repository, check_command=["sh", "-c", "echo begun; sleep 60"], check_seconds=1)
    result = evolve("check_deploy")["check"]
    assert (result["passed"], result["output"]) == (False, "begun\n")
    assert "stopped after 1 seconds" in result["note"]
    evolve = configured(repository, check_command=["sh", "-c", "yes | head -c 3000000; echo the end"])
    result = evolve("check_deploy")["check"]
    assert result["passed"] is True
    assert result["output"].endswith("the end\n")
    assert len(result["output"]) <= 8_000
    # Background processes of the check are ended without waiting.
    evolve = configured(repository, check_command=["sh", "-c", "sleep 60 & echo done"])
    result = evolve("check_deploy")["check"]
    assert (result["passed"], result["output"]) == (True, "done\n")
    assert result["seconds"] < 10


def test_a_check_that_cannot_be_started_is_reported(repository) -> None:
    evolve = configured(repository, check_command=["/nowhere/at/all"])
    with pytest.raises(toolbelt.ToolError, match="cannot be started"):
        evolve("check_deploy")
