"""files: writing and patching on a real directory."""

from __future__ import annotations

import os
import stat
import threading

import pytest

import toolbelt
from toolbelt.plugins.builtin.files import confined


def test_a_new_file_is_written_with_the_directories_on_its_way(files, root) -> None:
    assert files("write", path="a/b/c.txt", content="é\r\n") == {
        "path": "a/b/c.txt",
        "created": True,
        "bytes": 4,
    }
    assert (root / "a/b/c.txt").read_bytes() == "é\r\n".encode()


def test_a_file_that_is_there_is_replaced_only_when_told_so(files, root) -> None:
    (root / "main.py").chmod(0o755)
    with pytest.raises(toolbelt.ToolError, match="already exists"):
        files("write", path="main.py", content="new")
    assert files("write", path="main.py", content="new", overwrite=True)["created"] is False
    assert (root / "main.py").read_text() == "new"
    assert stat.S_IMODE((root / "main.py").stat().st_mode) == 0o755


def test_nothing_is_left_behind_by_a_write_that_fails(files, root, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(toolbelt.ToolError, match="No space left on device"):
        files("write", path="main.py", content="new", overwrite=True)
    assert (root / "main.py").read_text().startswith("import os")
    assert sorted(os.listdir(root)) == ["main.py", "notes", "picture.png"]


def test_a_patch_replaces_the_one_place(files, root) -> None:
    assert files("patch", path="notes/today.md", old="two\n", new="zwei\n")["replaced"] == 1
    assert (root / "notes/today.md").read_text() == "one\nzwei\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"old": "four", "new": ""}, "does not contain the old text"),
        ({"old": "o", "new": "0"}, "2 times, not 1"),
        ({"old": "one", "new": "two", "count": 2}, "1 times, not 2"),
        ({"old": "one", "new": "one"}, "nothing would change"),
        ({"old": "one", "new": "\ud800"}, "new: Input should be a valid string"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(files, root, arguments, said) -> None:
    with pytest.raises(toolbelt.ToolError, match=said):
        files("patch", path="notes/today.md", **arguments)
    assert (root / "notes/today.md").read_text() == "one\ntwo\nthree\n"


def test_a_patch_replaces_as_many_as_it_was_told(files, root) -> None:
    files("patch", path="notes/today.md", old="o", new="0", count=2)
    assert (root / "notes/today.md").read_text() == "0ne\ntw0\nthree\n"


def test_line_ends_of_another_system_are_named_as_the_reason(files, root) -> None:
    (root / "dos").write_bytes(b"a\r\nb\r\n")
    with pytest.raises(toolbelt.ToolError, match="CR LF"):
        files("patch", path="dos", old="a\nb", new="c")


def test_what_somebody_else_changed_in_the_meantime_is_not_overwritten(files, root, monkeypatch) -> None:
    read = confined.read_in

    def and_then_changed(parent, parts, most, **options):
        found = read(parent, parts, most, **options)
        (root / "notes/today.md").write_text("one\ntwo\nthree\nfour, by a person\n")
        return found

    monkeypatch.setattr(confined, "read_in", and_then_changed)
    with pytest.raises(toolbelt.ToolError, match="changed in the meantime"):
        files("patch", path="notes/today.md", old="two", new="zwei")
    assert "by a person" in (root / "notes/today.md").read_text()


def test_of_many_patches_at_once_none_is_lost(files, root) -> None:
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
