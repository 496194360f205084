"""Tests that the pages on plugins work: they write files, install, list, sync and call, as a reader does.

They are separate from the other pages because plugins store their state from their own threads, outside the test's
transaction.
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

# tests/test_installed.py runs the first hour, with an installed package.
PAGES = [page for page in pages.every() if pages.writes_files(page) and page.name != "first-hour.md"]
OUR_COMMAND = re.compile(r"^\$ toolbelt (\w+)(.*)$", re.DOTALL)
EXPORT = re.compile(r"^\$ export (.+)$")
INSTALL = re.compile(r"^\$ \.venv/bin/python -m pip install -e '(.+)\[test\]'$")
TEST = re.compile(r"^\$ \.venv/bin/python -m pytest -q (\S+)$")
SHELL = re.compile(r"^\$ (?:mkdir|git|ln) ")
SETTINGS = {f"TOOLBELT_{name}" for name in conf.SETTINGS}


class Reader:
    """A reader who follows a page, in a directory of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
        self._monkeypatch, self._settings = monkeypatch, settings

    def do(self, line: str) -> str | None:
        """Run a line of a console block and return its output, or None if a test cannot run it."""
        if match := OUR_COMMAND.match(line):
            # A command runs in a process of its own, which loads the plugins again.
            plugins.stop()
            return test_examples.run(match[1], match[2])
        if match := EXPORT.match(line):
            self._export(dict(part.split("=", 1) for part in shlex.split(os.path.expandvars(match[1]))))
        elif match := INSTALL.match(line):
            self._install(Path(match[1]).resolve())
        elif match := TEST.match(line):
            return run_tests(Path(match[1]))
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
        """Install as pip does, but without an index: add the package and its entry points to the path."""
        project = tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        info = home / f"{project['name'].replace('-', '_')}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
        points = "".join(
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in offered.items())
            for group, offered in project["entry-points"].items()
        )
        (info / "entry_points.txt").write_text(points)
        self._monkeypatch.syspath_prepend(home)


def run_tests(home: Path) -> str:
    """Run a package's tests in a process of their own."""
    path = os.pathsep.join([str(home.resolve()), str(pages.ROOT), *filter(None, sys.path)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(home)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120).stdout


def differences(page: Path, reader: Reader) -> Iterator[str]:
    """Run the blocks of the page in order; yield each difference from the output it shows."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, piece in enumerate(pages.pieces(page)):
        where = f"{pages.name(page)}, block {number}"
        match piece:
            case pages.Switch(key, on, agent):
                switches.flip(testing.OPERATOR.replace(confirm=True), agent, key, on)
            case pages.Block(text=text, file=file) if file:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(text, encoding="utf-8")
            case pages.Block("console", text):
                for line, shown in test_examples.commands(text):
                    printed = reader.do(line)
                    if printed is not None and (different := test_examples.difference(shown, printed)):
                        yield f"{where}: {line}\n{different}"
            case pages.Block("python", text):
                exec(compile(text, where, "exec"), namespace)  # noqa: S102 (our own pages)
            case pages.Block("pycon", text):
                yield from test_examples.session_differences(text, where, namespace)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_pages_on_plugins_show_the_actual_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, subtests: pytest.Subtests
) -> None:
    """One test for all pages, because loading the demo takes seconds."""
    fast_fixtures.demo()
    before = set(sys.modules)
    try:
        for page in PAGES:
            here = tmp_path / page.stem / "toolbelt"
            here.mkdir(parents=True)
            monkeypatch.chdir(here)
            monkeypatch.setenv("PWD", str(here))
            demo_plugins.use(settings, monkeypatch, tmp_path)
            settings.TOOLBELT_COMMAND = "toolbelt"
            with subtests.test(pages.name(page)):
                differing = "\n".join(differences(page, Reader(monkeypatch, settings)))
                assert not differing, differing
    finally:
        plugins.stop()
        snapshots.forget()
        for name in set(sys.modules) - before:
            if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_some_pages_write_files() -> None:
    assert PAGES
