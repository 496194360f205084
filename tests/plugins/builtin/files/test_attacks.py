"""files: what an agent, or another process on the disk, might try in order to leave the root."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
from typing import Any

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from toolbelt.plugins.builtin.files import confined, plugin

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path) -> pathlib.Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (tmp_path / "root-twin").mkdir()
    (tmp_path / "root-twin" / "secret.txt").write_text(SECRET)
    made: pathlib.Path = tmp_path / "root"
    (made / "inside").mkdir(parents=True)
    (made / "inside" / "plain.txt").write_text("plain")
    return made


def each_way(files: runtime.Running, path: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("read", {"path": path}),
        ("search", {"query": "secret", "path": path}),
        ("write", {"path": path, "content": "owned", "overwrite": True}),
        ("patch", {"path": path, "old": "secret", "new": "owned"}),
    ]


def assert_untouched(root: pathlib.Path) -> None:
    assert (root.parent / "outside/secret.txt").read_text() == SECRET
    assert (root.parent / "root-twin/secret.txt").read_text() == SECRET
    assert sorted(os.listdir(root.parent / "outside")) == ["secret.txt"]
    assert not [name for _, _, names in os.walk(root) for name in names if name.endswith(".tmp")]


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "inside/../../outside/secret.txt",
        "inside/../inside/plain.txt",
        "..",
        "./../root-twin/secret.txt",
        "../root-twin/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "inside\\..\\..\\outside\\secret.txt",
        "inside/plain.txt\0.md",
        "inside/\nplain.txt",
        "C:\\Windows\\win.ini",
        "a/" * 41 + "b",
        "n" * 256,
        "é" * 200,
        "\ud800",
        "." * 3 + "/" + "x" * 1_000,
    ],
)
def test_no_path_leaves_the_root(files, root, path) -> None:
    for name, arguments in each_way(files, path):
        key = f"files__{name}"
        if not runtime.violations(files.plugin, key, arguments):
            with pytest.raises(toolbelt.ToolError):
                files(name, **arguments)
    assert_untouched(root)


@pytest.mark.parametrize(
    "path", ["~/secret.txt", "%2e%2e/outside/secret.txt", "$HOME", "․․/outside", "INSIDE/plain.txt"]
)
def test_what_would_mean_something_elsewhere_is_only_a_name_here(files, root, path) -> None:
    with pytest.raises(toolbelt.ToolError, match="does not exist"):
        files("read", path=path)
    assert_untouched(root)


@pytest.mark.parametrize(
    ("link", "to", "path"),
    [
        ("out", "../outside", "out/secret.txt"),
        ("out.txt", "../outside/secret.txt", "out.txt"),
        ("absolute", "/etc", "absolute/passwd"),
        ("inside/up", "../..", "inside/up/outside/secret.txt"),
        ("stays", "inside", "stays/plain.txt"),
        ("loop", "loop", "loop"),
        ("dangling", "../outside/new.txt", "dangling"),
    ],
)
def test_no_link_is_followed(files, root, link, to, path) -> None:
    (root / link).symlink_to(to)
    for name, arguments in each_way(files, path):
        with pytest.raises(toolbelt.ToolError, match=r"link|not a regular file"):
            files(name, **arguments)
    with pytest.raises(toolbelt.ToolError, match="link"):
        files("list", path=link)
    assert_untouched(root)


def test_a_file_with_another_name_is_not_read_unless_the_operator_allows_it(files, root) -> None:
    os.link(root.parent / "outside/secret.txt", root / "inside/linked.txt")
    for name, arguments in each_way(files, "inside/linked.txt"):
        if name != "write":
            with pytest.raises(toolbelt.ToolError, match="several names"):
                files(name, **arguments)
    found = files("search", query="secret")
    assert (found["matches"], found["files_passed_over"]) == ([], 1)
    files("write", path="inside/linked.txt", content="another", overwrite=True)
    assert_untouched(root)
    assert files("read", path="inside/linked.txt")["content"] == "another"

    os.link(root.parent / "outside/secret.txt", root / "inside/more.txt")
    allowed = runtime.Running(plugin.Files(), {"root": str(root), "hard_links": True})
    try:
        assert allowed("read", path="inside/more.txt")["content"] == SECRET
        assert len(allowed("search", query="secret")["matches"]) == 1
    finally:
        allowed.stop()


def test_a_file_from_outside_whose_name_is_taken_away_while_it_is_opened_is_not_read(
    files, root, monkeypatch
) -> None:
    opened = os.open

    def and_then_gone(path: Any, *arguments: Any, **options: Any) -> int:
        descriptor = opened(path, *arguments, **options)
        if path == "linked.txt":
            (root / "inside/linked.txt").unlink()
        return descriptor

    os.link(root.parent / "outside/secret.txt", root / "inside/linked.txt")
    monkeypatch.setattr(os, "open", and_then_gone)
    with pytest.raises(toolbelt.ToolError, match="several names"):
        files("read", path="inside/linked.txt")


def test_a_file_is_read_while_others_write_it(files, root) -> None:
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            files("write", path="inside/busy.txt", content="busy", overwrite=True)
            (root / "inside/busy.txt").unlink()
            files("write", path="inside/busy.txt", content="busy")

    files("write", path="inside/busy.txt", content="busy")
    writer = threading.Thread(target=write)
    writer.start()
    said = set()
    try:
        for _ in range(200):
            try:
                said.add(files("read", path="inside/busy.txt")["content"])
            except toolbelt.ToolError as error:
                said.add(str(error))
    finally:
        is_over.set()
        writer.join()
    assert said <= {"busy", "inside/busy.txt does not exist."}


@pytest.mark.parametrize(
    "name",
    [
        ".g\u200cit",
        ".git\ufeff",
        ".\u034fgit",
        ".git.",
        ".git ",
        ".GIT::$INDEX_ALLOCATION",
        "git~1",
        "GIT~2",
        "．git",
    ],
)
def test_no_name_that_some_system_takes_for_gits_own_is_written(files, root, name) -> None:
    for path in (f"{name}/hooks/pre-commit", f"inside/{name}/config", name):
        with pytest.raises(toolbelt.ToolError, match="belong to git"):
            files("write", path=path, content="owned")
    assert not [*root.rglob("hooks"), *root.rglob("config")]


def test_names_that_only_begin_like_gits_own_are_written(files) -> None:
    for name in (".gitignore", ".github/x", "git", "my.git", "git~one", "notes.git."):
        files("write", path=name, content="fine")


def test_a_search_and_a_list_go_round_links(files, root) -> None:
    (root / "out").symlink_to("../outside")
    (root / "out.txt").symlink_to("../outside/secret.txt")
    assert files("search", query="secret")["matches"] == []
    assert [entry for entry in files("list", depth=5)["entries"] if entry["kind"] == "link"] == [
        {"path": "out", "kind": "link"},
        {"path": "out.txt", "kind": "link"},
    ]


def test_pipes_devices_and_sockets_neither_hang_nor_answer(files, root, monkeypatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # a socket's address must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in ("pipe", "socket"):
            for name, arguments in each_way(files, path):
                with pytest.raises(toolbelt.ToolError, match="regular file"):
                    files(name, **arguments)
    assert files("search", query="x")["files_searched"] == 1


def test_a_pipe_put_in_a_files_place_after_the_look_does_not_hang(files, root, monkeypatch) -> None:
    os.mkfifo(root / "pipe")
    looked = confined._status
    plain = os.stat(root / "inside/plain.txt")
    monkeypatch.setattr(
        confined, "_status", lambda parent, name: plain if name == "pipe" else looked(parent, name)
    )
    with pytest.raises(toolbelt.ToolError, match=r"device, pipe or socket|regular file"):
        files("read", path="pipe")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_opened(files, root) -> None:
    try:
        os.mknod(root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container makes no devices")
    with pytest.raises(toolbelt.ToolError, match="a device, pipe or socket"):
        files("read", path="zero")


@pytest.mark.parametrize("path", [".git/hooks/post-commit", "inside/.GIT/config", ".Git"])
def test_what_git_would_run_is_not_written(files, root, path) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"below \.git"):
        files("write", path=path, content="#!/bin/sh")
    assert sorted(os.listdir(root)) == ["inside"]


def test_a_directory_that_is_swapped_for_a_link_meets_a_refusal_and_never_the_outside(files, root) -> None:
    (root / "swapped").mkdir()
    (root / "swapped" / "secret.txt").write_text("the one inside")
    (root / "link").symlink_to("../outside")
    over = threading.Event()
    refusals = 0

    def swap() -> None:
        while not over.is_set():
            os.rename(root / "swapped", root / "aside")
            os.rename(root / "link", root / "swapped")
            os.rename(root / "swapped", root / "link")
            os.rename(root / "aside", root / "swapped")

    swapping = threading.Thread(target=swap)
    swapping.start()
    answers = set()
    opened = confined.Root(str(root))
    try:
        for _ in range(1_500):
            try:
                found = opened.read(("swapped", "secret.txt"), 100)
                answers.add(found.data)
                opened.write(("swapped", "secret.txt"), found.data, was=found.mark, replace=True)
            except toolbelt.ToolError:
                refusals += 1
    finally:
        over.set()
        swapping.join()
        opened.close()
    assert answers <= {b"the one inside"}
    assert refusals
    assert_untouched(root)


def test_a_file_that_is_swapped_for_a_link_between_look_and_opening_is_refused(
    files, root, monkeypatch
) -> None:
    looked = confined._status

    def and_then_swapped(parent: int, name: str) -> os.stat_result | None:
        found = looked(parent, name)
        if name == "plain.txt" and not (root / "inside/plain.txt").is_symlink():
            (root / "inside/plain.txt").unlink()
            (root / "inside/plain.txt").symlink_to("../../outside/secret.txt")
        return found

    monkeypatch.setattr(confined, "_status", and_then_swapped)
    with pytest.raises(toolbelt.ToolError, match="is a link"):
        files("read", path="inside/plain.txt")


def test_a_link_put_there_while_writing_is_replaced_and_not_written_through(files, root, monkeypatch) -> None:
    written = confined._write_new

    def and_then_linked(parent: int, name: str, data: bytes, mode: int | None) -> None:
        written(parent, name, data, mode)
        (root / "new.txt").symlink_to("../outside/secret.txt")

    monkeypatch.setattr(confined, "_write_new", and_then_linked)
    with pytest.raises(toolbelt.ToolError, match="is a link"):
        files("write", path="new.txt", content="owned")
    (root / "new.txt").unlink()
    files("write", path="new.txt", content="owned", overwrite=True)
    assert not (root / "new.txt").is_symlink()
    assert_untouched(root)


def test_a_file_that_grows_while_it_is_read_is_cut_off(root, monkeypatch) -> None:
    (root / "grown").write_bytes(b"x")
    before = os.stat(root / "grown")
    monkeypatch.setattr(os, "fstat", lambda descriptor: before)
    (root / "grown").write_bytes(b"x" * 10_000)
    opened = confined.Root(str(root))
    with pytest.raises(toolbelt.ToolError, match="at most 100"):
        opened.read(("grown",), 100)


def test_refusals_never_say_where_the_root_is(files, root) -> None:
    for path in ("gone", "inside/gone/gone", "inside", "inside/plain.txt/x"):
        with pytest.raises(toolbelt.ToolError) as refused:
            files("read", path=path)
        assert str(root) not in str(refused.value)


def test_a_name_that_is_no_text_is_listed_and_searched_without_a_crash(files, root) -> None:
    with open(os.path.join(os.fsencode(root), b"caf\xe9.txt"), "w") as file:
        file.write("plain too")
    assert files("list")["entries"][0]["path"] == "caf?.txt"
    assert len(files("search", query="plain")["matches"]) == 2


def test_descriptors_are_given_back(files, root) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not list descriptors")
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/hit").write_text("hit\n" * 10)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        files("search", query="hit", limit=3)
        files("list", depth=5)
        for name, arguments in each_way(files, "a/gone/c"):
            if name != "write":
                with pytest.raises(toolbelt.ToolError):
                    files(name, **arguments)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
