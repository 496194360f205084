"""Parsing of the plugins file, with the line of every problem.

::

    tool_plugins:
      - id: "my-tool-plugin"               # an installed plugin
        config: {api_key: "${MY_KEY}"}
      - module: "my_tool_plugin"           # or any class that can be imported
        class_name: "MyToolPlugin"

The file is first parsed into a tree with line numbers, so that every problem has a line. An entry with problems is
returned with them: it is not loaded, but operators see it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from toolbelt.plugins import tree_values

SECTION = "tool_plugins"
FIELDS = ("id", "module", "class_name", "config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem: its file, line (None for the whole file), key and message."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A plugin listed in the file. ``path`` is the entry's key in the file. ``config`` may contain secrets."""

    file: str
    line: int
    path: str
    id: str = ""
    module: str = ""
    class_name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """Return the entry's name for its plugin."""
        return self.id or f"{self.module}:{self.class_name}".strip(":") or self.path

    def problem(self, message: str) -> Problem:
        """Return a problem with the entry as a whole."""
        return Problem(file=self.file, line=self.line, path=self.path, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsFile:
    """The parsed file: its entries in order, and the problems outside of them."""

    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()


def read(path: Path, environ: Mapping[str, str]) -> PluginsFile:
    """Return the parsed file, with the variables of ``environ`` substituted. Never raises: errors become problems."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return _only(file, None, f"The file cannot be read: {error.strerror or error}.")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _only(file, line, "The file is not UTF-8 text.")
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        return PluginsFile() if tree is None else _file(tree, file, environ)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = mark.line + 1 if mark else None
        return _only(file, where, f"This is not YAML: {error.problem}.{_hint(text, where)}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return _only(file, line, f"This is not YAML: {error.reason}.")
    except RecursionError:
        return _only(file, None, "The file is nested too deeply to be read.")


def _hint(text: str, line: int | None) -> str:
    """Return a hint if the line contains a variable: YAML treats its braces as a mapping."""
    lines = text.splitlines()[line - 1 : line] if line else []
    return (
        ' A variable within { } must be in quotes: "${NAME}".' if any("${" in line for line in lines) else ""
    )


def _only(file: str, line: int | None, message: str) -> PluginsFile:
    return PluginsFile(problems=(Problem(file=file, line=line, path="", message=message),))


def _file(tree: yaml.Node, file: str, environ: Mapping[str, str]) -> PluginsFile:
    top = tree_values.Reader(environ)
    entries: list[Entry] = []
    for key, node in top.pairs(tree, "", (SECTION,)):
        if top.is_null(node):
            continue
        for position, item in enumerate(top.items(node, key)):
            entries.append(_entry(item, f"{key}[{position}]", file, environ))
    return PluginsFile(entries=tuple(entries), problems=_problems(file, top))


def _entry(node: yaml.Node, path: str, file: str, environ: Mapping[str, str]) -> Entry:
    reader = tree_values.Reader(environ)
    read: dict[str, Any] = {}
    for key, value in reader.pairs(node, path, FIELDS):
        if not reader.is_null(value):
            at = f"{path}.{key}"
            read[key] = reader.mapping(value, at) if key == "config" else reader.text(value, at)
    if not reader.problems:
        if ("module" in read) != ("class_name" in read):
            present, missing = ("module", "class_name") if "module" in read else ("class_name", "module")
            reader.report(node, path, f"An entry with {present!r} needs {missing!r} too.")
        elif not read.get("id") and not read.get("module"):
            reader.report(
                node, path, "An entry needs the 'id' of an installed plugin, or 'module' and 'class_name'."
            )
    entry = Entry(file=file, line=tree_values.line(node), path=path, **{k: v for k, v in read.items() if v})
    return dataclasses.replace(entry, problems=_problems(file, reader))


def _problems(file: str, reader: tree_values.Reader) -> tuple[Problem, ...]:
    return tuple(
        Problem(file=file, line=problem.line, path=problem.path, message=problem.message)
        for problem in reader.problems
    )
