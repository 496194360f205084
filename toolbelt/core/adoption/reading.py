"""Reading of foreign documents: every problem with its path, and what is not imported."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.core import errors, keys

Kind = Literal["mindroom", "jd-ai", "agent-adapter", "seajelly"]

# How similar a key must be to a known one to count as its misspelling: rooms is not tools, toolkit is toolkits.
SIMILAR = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The result of a conversion: a ``belt``, and for plugins, which are code, the content of a plugins file.

    ``skipped`` is what has no counterpart, and ``notes`` what an operator should know of the rest, each with its
    path. ``paths`` maps paths in the belt to paths in the file.
    """

    kind: Kind
    belt: Mapping[str, Any]
    plugins_file: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[errors.Problem, ...] = ()
    notes: tuple[errors.Problem, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)

    def in_file(self, problem: errors.Problem) -> errors.Problem:
        """Return a problem of the belt with its path in the file."""
        path = problem.path
        for end in range(len(path), 0, -1):
            is_boundary = end == len(path) or path[end] in ".["
            if is_boundary and (origin := self.paths.get(path[:end])) is not None:
                in_file = (origin + path[end:]).removeprefix(".")
                return errors.Problem(path=in_file, message=problem.message)
        return problem


class Reader:
    """Reads one document. A value that does not fit is a problem, and is read as if it were missing."""

    def __init__(self) -> None:
        self.problems: list[errors.Problem] = []
        self.skipped: list[errors.Problem] = []
        self.notes: list[errors.Problem] = []
        self.paths: dict[str, str] = {}

    def report(self, path: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(errors.Problem(path=path, message=message))

    def skip(self, path: str, why: str) -> None:
        """Add something that is not imported."""
        self.skipped.append(errors.Problem(path=path, message=why))

    def note(self, path: str, message: str) -> None:
        """Add something that an operator should know."""
        self.notes.append(errors.Problem(path=path, message=message))

    def adopted(self, kind: Kind, belt: Mapping[str, Any], **fields: Any) -> Adopted:
        """Return the result, with everything that was noticed on the way; empty sections are left out."""
        return Adopted(
            kind=kind,
            belt={section: entries for section, entries in belt.items() if entries},
            skipped=tuple(self.skipped),
            notes=tuple(self.notes),
            paths=dict(self.paths),
            **fields,
        )

    def mapping(self, value: Any, path: str) -> Mapping[str, Any]:
        """Return a mapping whose keys are text; null is an empty one."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.report(path, f"{_name(path)} must be a mapping, not {_shown(value)}.")
            return {}
        for key in value:
            if not isinstance(key, str) or not key.strip():
                self.report(path, f"{_name(path)} has a key that is not text: put it in quotes.")
        return {key: item for key, item in value.items() if isinstance(key, str) and key.strip()}

    def items(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """Yield the items of a list with their paths; null is an empty one."""
        if value is None:
            return
        if not isinstance(value, (list, tuple)):
            self.report(path, f"{_name(path)} must be a list, not {_shown(value)}.")
            return
        for position, item in enumerate(value):
            yield f"{path}[{position}]", item

    def text(self, value: Any, path: str) -> str:
        """Return a text; null is an empty one."""
        if value is None or isinstance(value, str):
            return value or ""
        self.report(path, f"{_name(path)} must be text, not {_shown(value)}.")
        return ""

    def texts(self, value: Any, path: str) -> list[str]:
        """Return the texts of a list."""
        return [text for at, item in self.items(value, path) if (text := self.text(item, at)) or item == ""]

    def fields(
        self,
        value: Any,
        path: str,
        names: Mapping[str, str],
        *,
        misplaced: Mapping[str, str],
        unused: str,
    ) -> dict[str, tuple[str, Any]]:
        """Return the known fields of a mapping by name, each with its path and value.

        ``names`` maps spellings (see :func:`normal`) to names. ``misplaced`` are fields that belong elsewhere, with the
        place. A key that resembles a known one is a problem; any other is skipped, for the reason ``unused``.
        """
        fields: dict[str, tuple[str, Any]] = {}
        for key, item in self.mapping(value, path).items():
            at = join(path, key)
            name = names.get(normal(key))
            if name is not None and name in fields:
                self.report(at, f"{key!r} is the same as {fields[name][0]}: remove one of them.")
            elif name is not None:
                fields[name] = (at, item)
            elif (where := misplaced.get(normal(key))) is not None:
                self.report(at, f"{key!r} does not belong here: move it to {where}.")
            elif similar := difflib.get_close_matches(normal(key), names, n=1, cutoff=SIMILAR):
                self.report(at, f"There is no key {key!r} here. Did you mean {names[similar[0]]}?")
            else:
                self.skip(at, unused)
        return fields


class DeclaredTools:
    """The tools that a file names and nothing here has: they belong to a client plugin, named after the program, and
    wait until the program declares them (docs/how-to/run-tools-in-your-program.md).

    A tool that is stored without a plugin, a description and a schema came from such a file before there was a plugin.
    """

    def __init__(self, name: str, title: str, stored: Mapping[str, Any], reader: Reader) -> None:
        self._name, self._title, self._reader = name, title, reader
        self._plugin = next((dict(it) for it in stored.get("plugins", ()) if it["name"] == name), None)
        self._stored = {entry["key"]: entry for entry in stored.get("tools", ())}

    def entries(self, tools: Mapping[str, str], agents: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the entries of the plugin and of its tools, given their places in the file by key.

        ``agents`` may declare them: those of the file, besides those that may already.
        """
        new = {key: at for key, at in tools.items() if key not in self._stored}
        hollow = {key: at for key, at in tools.items() if key in self._stored and self._is_hollow(key)}
        if not new and not hollow:
            return {}
        if self._plugin is not None and (self._plugin.get("upstream") or self._plugin.get("namespace")):
            message = (
                f"The tools of this file would belong to a plugin named {self._name!r}, which is another one here:"
                " rename that one, or add the tools first."
            )
            self._reader.report("", message)
            return {}
        for key, at in {**new, **hollow}.items():
            self._reader.paths |= {f"tools.{key}": at, f"tools.{key}.key": at}
        self._reader.note(
            "",
            f"The agent's own program runs these tools, and declares them for the plugin {self._name}:"
            f" {', '.join([*new, *hollow])}. They are unavailable until it does, and you approve them.",
        )
        plugin = self._plugin or {"name": self._name, "title": self._title}
        declared_by = dict.fromkeys((*plugin.get("declared_by", ()), *agents))
        return {
            "plugins": [{**plugin, "declared_by": [*declared_by]}],
            "tools": [
                *({"key": key, "plugin": self._name, "seen": False} for key in new),
                *({**self._stored[key], "plugin": self._name} for key in hollow),
            ],
        }

    def _is_hollow(self, key: str) -> bool:
        entry = self._stored[key]
        return not any(entry.get(field) for field in ("plugin", "description", "input_schema"))


def normal(key: str) -> str:
    """Return a key without case, - and _: C#, JavaScript and Python spell one key in different ways."""
    return keys.fold(key).replace("_", "").replace("-", "")


def join(path: str, key: str) -> str:
    """Return the path of a key."""
    return f"{path}.{key}" if path else key


def _name(path: str) -> str:
    return repr(path.rpartition(".")[2]) if path else "The file"


def _shown(value: Any) -> str:
    """Return a kind of value in words. Values themselves are never shown: they may be secrets."""
    match value:
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case None:
            return "null"
    return f"a {type(value).__name__}"
