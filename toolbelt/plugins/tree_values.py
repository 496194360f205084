"""Reading of values from a YAML tree, with the line of every problem.

Only JSON values are accepted: text, numbers, true, false, null, lists, and mappings with unique text keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from toolbelt.core import errors, variables

_TAG = "tag:yaml.org,2002:"
_WORDS = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "null"}
_SCALARS = frozenset(_TAG + kind for kind in _WORDS)


class TreeProblem(NamedTuple):
    """A problem in a tree: its line, its key and a message."""

    line: int
    path: str
    message: str


def line(node: yaml.Node) -> int:
    """Return the line on which the node begins, counted from 1."""
    return int(node.start_mark.line) + 1


class Reader:
    """Reads values from a tree, and collects problems in ``problems``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.problems: list[TreeProblem] = []
        self._environ = environ
        self._open: list[yaml.Node] = []

    def report(self, node: yaml.Node, path: str, message: str) -> None:
        """Record a problem."""
        self.problems.append(TreeProblem(line(node), path, message))

    def is_null(self, node: yaml.Node) -> bool:
        """Return whether the value is null or missing."""
        return node.tag == _TAG + "null"

    def text(self, node: yaml.Node, path: str) -> str:
        """Return a text, without substituting variables."""
        if node.tag == _TAG + "str" and isinstance(node.value, str) and node.value.strip():
            return node.value
        is_blank = node.tag == _TAG + "str"
        self.report(
            node, path, "This must not be blank." if is_blank else f"This must be text, not {_words(node)}."
        )
        return ""

    def items(self, node: yaml.Node, path: str) -> Sequence[yaml.Node]:
        """Return the nodes of a list."""
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self.report(node, path, f"This must be a list, not {_words(node)}.")
        return ()

    def pairs(
        self, node: yaml.Node, path: str, known_keys: Sequence[str] | None = None
    ) -> Iterator[tuple[str, yaml.Node]]:
        """Yield the pairs of a mapping. If ``known_keys`` are given, other keys are problems."""
        if not isinstance(node, yaml.MappingNode):
            expected = f"a mapping of {', '.join(known_keys)}" if known_keys else "a mapping"
            self.report(node, path, f"This must be {expected}, not {_words(node)}.")
            return
        first: dict[str, int] = {}
        for key_node, value in node.value:
            key = str(key_node.value)
            at = f"{path}.{key}" if path else key
            if key_node.tag != _TAG + "str":
                self.report(key_node, path, f"A key must be text, not {_words(key_node)}. Put it in quotes.")
            elif key in first:
                self.report(key_node, at, f"The key {key!r} is repeated. It is already on line {first[key]}.")
            elif known_keys is not None and key not in known_keys:
                near = errors.nearest(key, known_keys)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(known_keys)}."
                self.report(key_node, at, f"The key {key!r} is not known here. {hint}")
            else:
                first[key] = line(key_node)
                yield key, value

    def mapping(self, node: yaml.Node, path: str) -> dict[str, Any]:
        """Return a mapping of any values, with variables substituted."""
        return {key: self.value(value, f"{path}.{key}") for key, value in self.pairs(node, path)}

    def value(self, node: yaml.Node, path: str) -> Any:
        """Return any value, with variables substituted, or None if it is not valid."""
        if any(node is above for above in self._open):
            self.report(node, path, "This contains itself.")
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._open.pop()

    def _scalar(self, node: yaml.Node, path: str) -> Any:
        if node.tag == _TAG + "str":
            filled, problems = variables.fill(node.value, self._environ)
            for problem in problems:
                self.report(node, path, problem)
            return filled
        if node.tag not in _SCALARS:
            self.report(node, path, f"This cannot be {_words(node)}. Put it in quotes to make it text.")
            return None
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, LookupError, OverflowError):
            # The value does not match its tag: "!!bool maybe".
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            self.report(node, path, f"{node.value!r} is not {_words(node)}.")
        return value


def _words(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    kind = node.tag.removeprefix(_TAG)
    return _WORDS.get(kind, f"a value of the kind {kind!r}")
