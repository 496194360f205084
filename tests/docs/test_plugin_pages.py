"""Tests that the pages on plugins work: they write files, install, list, sync and call, as a reader does.

Apart from the other pages, because plugins store their state from their own threads, outside the test's transaction.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import demo_plugins, fast_fixtures
from tests.docs import pages, test_examples
from toolbelt import conf, testing
from toolbelt.control.access import switches
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

PAGES = [page for page in pages.every() if pages.writes_files(page)]
OURS = re.compile(r"^\$ \.venv/bin/python manage\.py (\w+)(.*)$", re.DOTALL)
EXPORT = re.compile(r"^\$ export (.+)$")
INSTALL = re.compile(r"^\$ \.venv/bin/python -m pip install -e '(.+)\[test\]'$")
TEST = re.compile(r"^\$ \.venv/bin/python -m pytest -q (\S+)$")
SHELL = re.compile(r"^\$ (?:mkdir|git|ln) ")
SETTINGS = {f"TOOLBELT_{setting.name}" for setting in conf.SETTINGS}


class Reader:
    """A reader who follows a page, in a directory of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
        self._monkeypatch, self._settings = monkeypatch, settings

    def do(self, line: str) -> str | None:
        """Do what a line of a console block says, and give what it prints; None for what is not for a test to do."""
        if found := OURS.match(line):
            # A command is a process of its own, which loads its plugins itself.
            plugins.stop()
            return test_examples.run(found[1], found[2])
        if found := EXPORT.match(line):
            self._export(dict(part.split("=", 1) for part in shlex.split(os.path.expandvars(found[1]))))
        elif found := INSTALL.match(line):
            self._install(Path(found[1]).resolve())
        elif found := TEST.match(line):
            return run_tests(Path(found[1]))
        elif SHELL.match(line):
            return subprocess.run(  # noqa: S602 - our own pages
                line.removeprefix("$ "), shell=True, capture_output=True, text=True, check=True
            ).stdout
        return None

    def _export(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            if name in SETTINGS:
                setattr(self._settings, name, {"on": True, "off": False}.get(value, value))
            else:
                self._monkeypatch.setenv(name, value)

    def _install(self, home: Path) -> None:
        """Do as pip does, without asking an index: leave what finds the package, and its entry points, on the path."""
        project = tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        told = home / f"{project['name'].replace('-', '_')}-1.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
        points = "".join(
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in offered.items())
            for group, offered in project["entry-points"].items()
        )
        (told / "entry_points.txt").write_text(points)
        self._monkeypatch.syspath_prepend(home)


def run_tests(home: Path) -> str:
    """Run a package's tests in a process of their own."""
    path = os.pathsep.join([str(home.resolve()), str(pages.ROOT), *filter(None, sys.path)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(home)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120).stdout


def differing(page: Path, reader: Reader) -> Iterator[str]:
    """Do what the page shows, in its order; say where something else comes out."""
    known: dict[str, Any] = {"__name__": "page"}
    for number, piece in enumerate(pages.pieces(page)):
        where = f"{pages.name(page)}, block {number}"
        match piece:
            case pages.Switched(key, on, agent):
                switches.flip(testing.OPERATOR.replace(confirm=True), agent, key, on)
            case pages.Block(text=text, file=file) if file:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(text, encoding="utf-8")
            case pages.Block("console", text):
                for line, shown in test_examples.commands(text):
                    printed = reader.do(line)
                    if printed is not None and (other := test_examples.compared(shown, printed)):
                        yield f"{where}: {line}\n{other}"
            case pages.Block("python", text):
                exec(compile(text, where, "exec"), known)  # noqa: S102 (our own pages)
            case pages.Block("pycon", text):
                yield from test_examples.spoken(text, where, known)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_the_pages_on_plugins_show_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, subtests: pytest.Subtests
) -> None:
    """One test for all of them, because loading the demo takes seconds."""
    fast_fixtures.demo()
    before = set(sys.modules)
    try:
        for page in PAGES:
            here = tmp_path / page.stem / "toolbelt"
            here.mkdir(parents=True)
            monkeypatch.chdir(here)
            monkeypatch.setenv("PWD", str(here))
            demo_plugins.use(settings, monkeypatch, tmp_path)
            with subtests.test(pages.name(page)):
                found = "\n".join(differing(page, Reader(monkeypatch, settings)))
                assert not found, found
    finally:
        plugins.stop()
        snapshots.forget()
        for name in set(sys.modules) - before:
            if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_there_are_such_pages() -> None:
    assert PAGES
