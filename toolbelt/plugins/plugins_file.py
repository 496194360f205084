"""What does the plugins' file say, and on which line is it wrong?

::

    tool_plugins:
      - id: "my-tool-plugin"               # an installed plugin
        config: {api_key: "${MY_KEY}"}
      - module: "my_tool_plugin"           # or any class that can be imported
        class_name: "MyToolPlugin"

The file is read as a tree with lines and only then as values, so that every problem can say where it is. An entry with
problems is kept with them: it is not loaded, and operators see that it was meant to be.
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
    """One thing that is wrong: in which file, on which line (None: not on one), at which key, and what."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A plugin as it is listed; ``path`` is the entry's key in the file. ``config`` may hold secrets."""

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
        """How the entry calls its plugin."""
        return self.id or f"{self.module}:{self.class_name}".strip(":") or self.path

    def problem(self, message: str) -> Problem:
        """Say what is wrong with the entry as a whole."""
        return Problem(file=self.file, line=self.line, path=self.path, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsFile:
    """What could be read: the entries in order, and what is wrong outside of them."""

    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()


def read(path: Path, environ: Mapping[str, str]) -> PluginsFile:
    """Read the file, with the variables of ``environ`` filled in; whatever is in it, this raises nothing."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return _only(file, None, f"The file cannot be read: {error.strerror or error}.")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _only(file, line, "The file is not text in UTF-8.")
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
    """Say what is most likely meant where a variable stands in the line: braces of its own are YAML's, too."""
    lines = text.splitlines()[line - 1 : line] if line else []
    return ' A variable within { } must be in quotes: "${NAME}".' if any("${" in one for one in lines) else ""


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
    if not reader.found:
        if ("module" in read) != ("class_name" in read):
            given, missing = ("module", "class_name") if "module" in read else ("class_name", "module")
            reader.find(node, path, f"An entry with {given!r} needs {missing!r} too.")
        elif not read.get("id") and not read.get("module"):
            reader.find(
                node, path, "An entry needs the 'id' of an installed plugin, or 'module' and 'class_name'."
            )
    entry = Entry(file=file, line=tree_values.line(node), path=path, **{k: v for k, v in read.items() if v})
    return dataclasses.replace(entry, problems=_problems(file, reader))


def _problems(file: str, reader: tree_values.Reader) -> tuple[Problem, ...]:
    return tuple(
        Problem(file=file, line=found.line, path=found.path, message=found.message) for found in reader.found
    )
