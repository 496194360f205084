"""Tests of the files plugin: writing and patching in a real directory."""

from __future__ import annotations

import os
import stat
import threading

import pytest

import toolbelt
from toolbelt.plugins.builtin.files import confined


def test_writing_a_new_file_creates_missing_directories(files, root) -> None:
    assert files("write", path="a/b/c.txt", content="é\r\n") == {
        "path": "a/b/c.txt",
        "created": True,
        "bytes": 4,
    }
    assert (root / "a/b/c.txt").read_bytes() == "é\r\n".encode()


def test_an_existing_file_is_replaced_only_with_overwrite(files, root) -> None:
    (root / "main.py").chmod(0o755)
    with pytest.raises(toolbelt.ToolError, match="already exists"):
        files("write", path="main.py", content="new")
    assert files("write", path="main.py", content="new", overwrite=True)["created"] is False
    assert (root / "main.py").read_text() == "new"
    assert stat.S_IMODE((root / "main.py").stat().st_mode) == 0o755


def test_a_failed_write_leaves_the_directory_unchanged(files, root, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(toolbelt.ToolError, match="No space left on device"):
        files("write", path="main.py", content="new", overwrite=True)
    assert (root / "main.py").read_text().startswith("import os")
    assert sorted(os.listdir(root)) == ["main.py", "notes", "picture.png"]


def test_a_patch_replaces_the_only_occurrence(files, root) -> None:
    assert files("patch", path="notes/today.md", old="two\n", new="zwei\n")["replaced"] == 1
    assert (root / "notes/today.md").read_text() == "one\nzwei\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"old": "four", "new": ""}, "does not contain the old text"),
        ({"old": "o", "new": "0"}, "2 times, not 1"),
        ({"old": "one", "new": "two", "count": 2}, "1 times, not 2"),
        ({"old": "one", "new": "one"}, "nothing would change"),
        ({"old": "one", "new": "\ud800"}, "new: Input should be a valid string"),
    ],
)
def test_a_patch_that_does_not_apply_changes_nothing(files, root, arguments, message) -> None:
    with pytest.raises(toolbelt.ToolError, match=message):
        files("patch", path="notes/today.md", **arguments)
    assert (root / "notes/today.md").read_text() == "one\ntwo\nthree\n"


def test_a_patch_replaces_the_given_number_of_occurrences(files, root) -> None:
    files("patch", path="notes/today.md", old="o", new="0", count=2)
    assert (root / "notes/today.md").read_text() == "0ne\ntw0\nthree\n"


def test_a_patch_that_fails_because_of_line_endings_says_so(files, root) -> None:
    (root / "dos").write_bytes(b"a\r\nb\r\n")
    with pytest.raises(toolbelt.ToolError, match="CR LF"):
        files("patch", path="dos", old="a\nb", new="c")


def test_a_file_changed_by_another_writer_is_not_overwritten(files, root, monkeypatch) -> None:
    original_read = confined.read_in

    def read_and_change(parent, parts, most, **options):
        file = original_read(parent, parts, most, **options)
        (root / "notes/today.md").write_text("one\ntwo\nthree\nfour, by a person\n")
        return file

    monkeypatch.setattr(confined, "read_in", read_and_change)
    with pytest.raises(toolbelt.ToolError, match="changed in the meantime"):
        files("patch", path="notes/today.md", old="two", new="zwei")
    assert "by a person" in (root / "notes/today.md").read_text()


def test_concurrent_patches_are_all_applied(files, root) -> None:
    (root / "counted").write_text("".join(f"<{number}>" for number in range(12)))
    threads = [
        threading.Thread(
            target=files,
            args=("patch",),
            kwargs={"path": "counted", "old": f"<{number}>", "new": f"[{number}]"},
        )
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "<" not in (root / "counted").read_text()
