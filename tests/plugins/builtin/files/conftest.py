"""Fixtures: a root directory with a few files, and the running plugin."""

from __future__ import annotations

import pathlib

import pytest

from tests.plugins.builtin import runtime
from toolbelt.plugins.builtin.files import plugin


@pytest.fixture
def root(tmp_path) -> pathlib.Path:
    path: pathlib.Path = tmp_path / "root"
    (path / "notes").mkdir(parents=True)
    (path / "notes" / "today.md").write_text("one\ntwo\nthree\n")
    (path / "main.py").write_text("import os\n\nprint('Hello')\n")
    (path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return path


@pytest.fixture
def files(root):
    running = runtime.RunningPlugin(plugin.Files(), {"root": str(root), "max_file_bytes": 50_000})
    yield running
    running.stop()
