"""Tests that neither an agent nor another process on the disk gets the files plugin to leave the root."""

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
    path: pathlib.Path = tmp_path / "root"
    (path / "inside").mkdir(parents=True)
    (path / "inside" / "plain.txt").write_text("plain")
    return path


def operations_on(files: runtime.RunningPlugin, path: str) -> list[tuple[str, dict[str, Any]]]:
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
    for name, arguments in operations_on(files, path):
        key = f"files__{name}"
        if not runtime.violations(files.plugin, key, arguments):
            with pytest.raises(toolbelt.ToolError):
                files(name, **arguments)
    assert_untouched(root)


@pytest.mark.parametrize(
    "path", ["~/secret.txt", "%2e%2e/outside/secret.txt", "$HOME", "․․/outside", "INSIDE/plain.txt"]
)
def test_paths_with_meaning_to_shells_or_urls_are_taken_literally(files, root, path) -> None:
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
def test_symbolic_links_are_not_followed(files, root, link, to, path) -> None:
    (root / link).symlink_to(to)
    for name, arguments in operations_on(files, path):
        with pytest.raises(toolbelt.ToolError, match=r"link|not a regular file"):
            files(name, **arguments)
    with pytest.raises(toolbelt.ToolError, match="link"):
        files("list", path=link)
    assert_untouched(root)


def test_hard_links_are_not_read_unless_the_operator_allows_them(files, root) -> None:
    os.link(root.parent / "outside/secret.txt", root / "inside/linked.txt")
    for name, arguments in operations_on(files, "inside/linked.txt"):
        if name != "write":
            with pytest.raises(toolbelt.ToolError, match="several names"):
                files(name, **arguments)
    result = files("search", query="secret")
    assert (result["matches"], result["files_passed_over"]) == ([], 1)
    files("write", path="inside/linked.txt", content="another", overwrite=True)
    assert_untouched(root)
    assert files("read", path="inside/linked.txt")["content"] == "another"

    os.link(root.parent / "outside/secret.txt", root / "inside/more.txt")
    allowed = runtime.RunningPlugin(plugin.Files(), {"root": str(root), "hard_links": True})
    try:
        assert allowed("read", path="inside/more.txt")["content"] == SECRET
        assert len(allowed("search", query="secret")["matches"]) == 1
    finally:
        allowed.stop()


def test_a_hard_link_unlinked_while_it_is_opened_is_not_read(files, root, monkeypatch) -> None:
    original_open = os.open

    def open_and_unlink(path: Any, *arguments: Any, **options: Any) -> int:
        descriptor = original_open(path, *arguments, **options)
        if path == "linked.txt":
            (root / "inside/linked.txt").unlink()
        return descriptor

    os.link(root.parent / "outside/secret.txt", root / "inside/linked.txt")
    monkeypatch.setattr(os, "open", open_and_unlink)
    with pytest.raises(toolbelt.ToolError, match="several names"):
        files("read", path="inside/linked.txt")


def test_a_file_can_be_read_while_it_is_rewritten(files, root) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            files("write", path="inside/busy.txt", content="busy", overwrite=True)
            (root / "inside/busy.txt").unlink()
            files("write", path="inside/busy.txt", content="busy")

    files("write", path="inside/busy.txt", content="busy")
    writer = threading.Thread(target=write)
    writer.start()
    results = set()
    try:
        for _ in range(200):
            try:
                results.add(files("read", path="inside/busy.txt")["content"])
            except toolbelt.ToolError as error:
                results.add(str(error))
    finally:
        stop.set()
        writer.join()
    assert results <= {"busy", "inside/busy.txt does not exist."}


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
def test_names_that_some_systems_treat_as_dot_git_are_not_written(files, root, name) -> None:
    for path in (f"{name}/hooks/pre-commit", f"inside/{name}/config", name):
        with pytest.raises(toolbelt.ToolError, match="belong to git"):
            files("write", path=path, content="owned")
    assert not [*root.rglob("hooks"), *root.rglob("config")]


def test_names_that_merely_resemble_dot_git_are_written(files) -> None:
    for name in (".gitignore", ".github/x", "git", "my.git", "git~one", "notes.git."):
        files("write", path=name, content="fine")


def test_searches_and_listings_skip_symbolic_links(files, root) -> None:
    (root / "out").symlink_to("../outside")
    (root / "out.txt").symlink_to("../outside/secret.txt")
    assert files("search", query="secret")["matches"] == []
    assert [entry for entry in files("list", depth=5)["entries"] if entry["kind"] == "link"] == [
        {"path": "out", "kind": "link"},
        {"path": "out.txt", "kind": "link"},
    ]


def test_pipes_and_sockets_are_refused_without_hanging(files, root, monkeypatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # a socket's path has a maximum length
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in ("pipe", "socket"):
            for name, arguments in operations_on(files, path):
                with pytest.raises(toolbelt.ToolError, match="regular file"):
                    files(name, **arguments)
    assert files("search", query="x")["files_searched"] == 1


def test_a_pipe_that_replaces_a_file_after_the_check_does_not_hang(files, root, monkeypatch) -> None:
    os.mkfifo(root / "pipe")
    original_status = confined._status
    plain = os.stat(root / "inside/plain.txt")
    monkeypatch.setattr(
        confined, "_status", lambda parent, name: plain if name == "pipe" else original_status(parent, name)
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
def test_files_that_git_would_run_are_not_written(files, root, path) -> None:
    with pytest.raises(toolbelt.ToolError, match=r"below \.git"):
        files("write", path=path, content="#!/bin/sh")
    assert sorted(os.listdir(root)) == ["inside"]


def test_a_directory_swapped_for_a_link_during_access_never_exposes_outside_files(files, root) -> None:
    (root / "swapped").mkdir()
    (root / "swapped" / "secret.txt").write_text("the one inside")
    (root / "link").symlink_to("../outside")
    stop = threading.Event()
    refusals = 0

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "swapped", root / "aside")
            os.rename(root / "link", root / "swapped")
            os.rename(root / "swapped", root / "link")
            os.rename(root / "aside", root / "swapped")

    swapping = threading.Thread(target=swap)
    swapping.start()
    contents = set()
    directory = confined.Root(str(root))
    try:
        for _ in range(1_500):
            try:
                file = directory.read(("swapped", "secret.txt"), 100)
                contents.add(file.data)
                directory.write(("swapped", "secret.txt"), file.data, was=file.mark, replace=True)
            except toolbelt.ToolError:
                refusals += 1
    finally:
        stop.set()
        swapping.join()
        directory.close()
    assert contents <= {b"the one inside"}
    assert refusals
    assert_untouched(root)


def test_a_file_swapped_for_a_link_between_check_and_open_is_refused(files, root, monkeypatch) -> None:
    original_status = confined._status

    def status_and_swap(parent: int, name: str) -> os.stat_result | None:
        status = original_status(parent, name)
        if name == "plain.txt" and not (root / "inside/plain.txt").is_symlink():
            (root / "inside/plain.txt").unlink()
            (root / "inside/plain.txt").symlink_to("../../outside/secret.txt")
        return status

    monkeypatch.setattr(confined, "_status", status_and_swap)
    with pytest.raises(toolbelt.ToolError, match="is a link"):
        files("read", path="inside/plain.txt")


def test_a_link_created_during_a_write_is_never_written_through(files, root, monkeypatch) -> None:
    original_write = confined._write_new

    def write_and_link(parent: int, name: str, data: bytes, mode: int | None) -> None:
        original_write(parent, name, data, mode)
        (root / "new.txt").symlink_to("../outside/secret.txt")

    monkeypatch.setattr(confined, "_write_new", write_and_link)
    with pytest.raises(toolbelt.ToolError, match="is a link"):
        files("write", path="new.txt", content="owned")
    (root / "new.txt").unlink()
    files("write", path="new.txt", content="owned", overwrite=True)
    assert not (root / "new.txt").is_symlink()
    assert_untouched(root)


def test_a_file_that_grows_while_it_is_read_is_refused(root, monkeypatch) -> None:
    (root / "grown").write_bytes(b"x")
    before = os.stat(root / "grown")
    monkeypatch.setattr(os, "fstat", lambda descriptor: before)
    (root / "grown").write_bytes(b"x" * 10_000)
    directory = confined.Root(str(root))
    with pytest.raises(toolbelt.ToolError, match="at most 100"):
        directory.read(("grown",), 100)


def test_refusals_never_reveal_the_path_of_the_root(files, root) -> None:
    for path in ("gone", "inside/gone/gone", "inside", "inside/plain.txt/x"):
        with pytest.raises(toolbelt.ToolError) as refused:
            files("read", path=path)
        assert str(root) not in str(refused.value)


def test_file_names_that_are_not_utf_8_are_listed_and_searched(files, root) -> None:
    with open(os.path.join(os.fsencode(root), b"caf\xe9.txt"), "w") as file:
        file.write("plain too")
    assert files("list")["entries"][0]["path"] == "caf?.txt"
    assert len(files("search", query="plain")["matches"]) == 2


def test_file_descriptors_are_closed(files, root) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not list descriptors")
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/hit").write_text("hit\n" * 10)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        files("search", query="hit", limit=3)
        files("list", depth=5)
        for name, arguments in operations_on(files, "a/gone/c"):
            if name != "write":
                with pytest.raises(toolbelt.ToolError):
                    files(name, **arguments)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
