"""A root with a few files, and the plugin at work in it."""

from __future__ import annotations

import pathlib

import pytest

from tests.plugins.builtin import runtime
from toolbelt.plugins.builtin.files import plugin


@pytest.fixture
def root(tmp_path) -> pathlib.Path:
    made: pathlib.Path = tmp_path / "root"
    (made / "notes").mkdir(parents=True)
    (made / "notes" / "today.md").write_text("one\ntwo\nthree\n")
    (made / "main.py").write_text("import os\n\nprint('Hello')\n")
    (made / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return made


@pytest.fixture
def files(root):
    running = runtime.Running(plugin.Files(), {"root": str(root), "max_file_bytes": 50_000})
    yield running
    running.stop()
