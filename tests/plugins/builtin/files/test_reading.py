"""Tests of the files plugin: configuration, reading, listing and searching in a real directory."""

from __future__ import annotations

import asyncio
import os

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from toolbelt.plugins import config
from toolbelt.plugins.builtin.files import confined, plugin, searching, toolkit


def test_the_plugin_is_valid() -> None:
    runtime.assert_valid(plugin.Files())


def test_annotations_match_the_reading_and_writing_toolkits() -> None:
    read_only = {tool.name for tool in plugin.Files().tools if tool.annotations["readOnlyHint"]}
    assert read_only == set(toolkit.Reading.members)
    destructive = {tool.name for tool in plugin.Files().tools if tool.annotations["destructiveHint"]}
    assert destructive == set(toolkit.Writing.members)


@pytest.mark.parametrize(
    ("config_", "message"),
    [
        ({}, "files is not valid: root: Field required"),
        ({"root": ""}, "begin it with /"),
        ({"root": 5}, "root: Input should be a valid string"),
        ({"root": "notes"}, "begin it with /"),
        ({"root": "/nowhere/at/all"}, "is not a directory: create it"),
        ({"root": "/", "largest": 3}, "files has no setting 'largest'"),
        ({"root": "/", "max_file_bytes": 0}, "max_file_bytes: Input should be greater than or equal to 1"),
        ({"root": "/", "max_file_bytes": True}, "max_file_bytes: not a number"),
    ],
)
def test_an_invalid_configuration_is_refused(config_, message) -> None:
    with pytest.raises(config.ConfigError, match=message):
        runtime.RunningPlugin(plugin.Files(), config_)


def test_a_system_without_dir_fd_support_is_refused(root, monkeypatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(config.ConfigError, match="relative to a directory"):
        runtime.RunningPlugin(plugin.Files(), {"root": str(root)})


def test_a_whole_file_is_read_by_default(files) -> None:
    assert files("read", path="notes/today.md") == {
        "path": "notes/today.md",
        "content": "one\ntwo\nthree\n",
        "first_line": 1,
        "last_line": 3,
        "line_count": 3,
    }


def test_a_range_of_lines_returns_the_next_line_number(files) -> None:
    result = files("read", path="./notes//today.md", first_line=2, lines=1)
    assert (result["content"], result["last_line"], result["next_line"]) == ("two\n", 2, 3)


@pytest.mark.parametrize(
    ("data", "content", "count"),
    [
        (b"", "", 0),
        (b"a", "a", 1),
        (b"a\r\nb", "a\r\nb", 2),
        ("é\x0c\u2028x\n".encode(), "é\x0c\u2028x\n", 1),
    ],
)
def test_file_contents_are_returned_unchanged(files, root, data, content, count) -> None:
    (root / "some").write_bytes(data)
    result = files("read", path="some")
    assert (result["content"], result["line_count"]) == (content, count)


def test_a_line_past_the_end_is_refused(files) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"no line 4. The file has 3"):
        files("read", path="notes/today.md", first_line=4)


def test_a_result_never_exceeds_the_length_limit(root) -> None:
    (root / "long").write_text("x" * 150_000 + "\n" + "y\n" * 60_000)
    files = runtime.RunningPlugin(plugin.Files(), {"root": str(root)})
    result = files("read", path="long")
    assert (len(result["content"]), result["next_line"]) == (100_000, 2)
    assert "too long" in result["note"]
    assert len(files("read", path="long", first_line=2)["content"]) <= 100_000


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"caf\xe9"])
def test_files_that_are_not_utf_8_text_are_refused(files, root, data) -> None:
    (root / "binary").write_bytes(data)
    with pytest.raises(toolbelt.ToolError, match="not UTF-8 text"):
        files("read", path="binary")
    with pytest.raises(toolbelt.ToolError, match="not UTF-8 text"):
        files("patch", path="binary", old="a", new="b")


def test_a_file_that_is_too_large_is_refused(files, root) -> None:
    (root / "large").write_bytes(b"a" * 50_001)
    with pytest.raises(toolbelt.ToolError, match="50001 bytes; at most 50000"):
        files("read", path="large")
    with pytest.raises(toolbelt.ToolError, match="at most 50000 are allowed"):
        files("write", path="larger", content="é" * 25_001)
    assert not (root / "larger").exists()


def test_each_kind_of_wrong_path_has_its_own_message(files) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"notes/gone\.md does not exist"):
        files("read", path="notes/gone.md")
    with pytest.raises(toolbelt.ToolError, match="gone does not exist"):
        files("read", path="gone/gone.md")
    with pytest.raises(toolbelt.ToolError, match=r"main\.py is not a directory"):
        files("read", path="main.py/more")
    with pytest.raises(toolbelt.ToolError, match="notes is a directory"):
        files("read", path="notes")
    with pytest.raises(toolbelt.ToolError, match="Name a file"):
        files("read", path="notes/")


def test_a_directory_is_listed_in_order_up_to_the_given_depth(files) -> None:
    assert files("list") == {
        "path": ".",
        "entries": [
            {"path": "main.py", "kind": "file", "bytes": 26},
            {"path": "notes", "kind": "directory"},
            {"path": "picture.png", "kind": "file", "bytes": 10},
        ],
        "complete": True,
    }
    deep = files("list", depth=2)["entries"]
    assert [entry["path"] for entry in deep] == ["main.py", "notes", "notes/today.md", "picture.png"]


def test_a_truncated_list_is_marked_incomplete(files, root, monkeypatch) -> None:
    (root / "many").mkdir()
    for number in range(1_001):
        (root / "many" / f"{number:04}").touch()
    result = files("list", path="many")
    assert (len(result["entries"]), result["complete"]) == (1_000, False)
    monkeypatch.setattr(confined, "MAX_DIRECTORY_ENTRIES", 10)
    assert files("list", path="many")["complete"] is False
    assert files("search", query="x", path="many")["stopped_by"] == "a directory of more than 10 names"


def test_search_matches_have_path_line_number_and_text(files) -> None:
    assert files("search", query="two") == {
        "matches": [{"path": "notes/today.md", "line": 2, "text": "two"}],
        "files_searched": 3,
        "complete": True,
        "files_passed_over": 1,
    }
    assert files("search", query="print(", path="main.py")["matches"][0]["line"] == 3
    assert files("search", query="hello")["matches"] == []
    assert len(files("search", query="HELLO", ignore_case=True)["matches"]) == 1
    assert len(files("search", query=r"^t\w+$", regex=True)["matches"]) == 2
    assert files("search", query="two", glob="*.py")["files_searched"] == 1
    assert files("search", query="two", glob="notes/*.md")["files_searched"] == 1


def test_backtracking_patterns_are_harmless_and_invalid_patterns_are_refused(files, root) -> None:
    (root / "a").write_text("a" * 40_000 + "!")
    assert files("search", query="(a+)+$", regex=True, path="a")["matches"] == []
    with pytest.raises(toolbelt.ToolError, match="not a valid RE2 expression"):
        files("search", query="(a", regex=True)
    with pytest.raises(toolbelt.ToolError, match="not a valid RE2 expression"):
        files("search", query=r"(a)\1", regex=True)


def test_a_search_stops_at_its_limits_and_names_them(files, root, monkeypatch) -> None:
    (root / "many").write_text("hit\n" * 100)
    result = files("search", query="hit", limit=5)
    assert (len(result["matches"]), result["complete"], result["stopped_by"]) == (5, False, "5 matches")
    monkeypatch.setattr(searching, "MAX_FILES", 1)
    assert files("search", query="nothing")["stopped_by"].startswith("1 files with")
    monkeypatch.setattr(searching, "MAX_SECONDS", -1.0)
    assert "seconds" in files("search", query="nothing")["stopped_by"]


def test_a_long_line_is_shortened_around_its_match(files, root) -> None:
    (root / "min.js").write_text("x" * 10_000 + "needle" + "y" * 10_000)
    text = files("search", query="needle")["matches"][0]["text"]
    assert "needle" in text
    assert len(text) == 300


def test_a_closed_root_refuses_reads(root) -> None:
    directory = confined.Root(str(root))
    directory.close()
    directory.close()
    with pytest.raises(toolbelt.ToolError, match="are closed"):
        directory.read(("main.py",), 10)


def test_an_unknown_tool_is_refused(files) -> None:
    with pytest.raises(ValueError, match="Unknown tool"):
        asyncio.run(files.plugin.execute("files__delete", {}))
