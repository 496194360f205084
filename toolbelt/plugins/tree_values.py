"""Which values stand in a YAML tree, and on which line is one that cannot stand there?

Taken is what JSON can say too: text, numbers, true, false, null, lists, and mappings whose keys are text and stand
there once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from toolbelt.core import errors
from toolbelt.plugins import variables

_TAG = "tag:yaml.org,2002:"
_WORDS = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "null"}
_SCALARS = frozenset(_TAG + kind for kind in _WORDS)


class Found(NamedTuple):
    """Something that is wrong: on which line, at which key, and what."""

    line: int
    path: str
    message: str


def line(node: yaml.Node) -> int:
    """Give the line on which the node begins, counted from 1."""
    return int(node.start_mark.line) + 1


class Reader:
    """Reads values of a tree, and collects what it finds wrong on the way in ``found``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.found: list[Found] = []
        self._environ = environ
        self._open: list[yaml.Node] = []

    def find(self, node: yaml.Node, path: str, message: str) -> None:
        """Keep that something is wrong there."""
        self.found.append(Found(line(node), path, message))

    def is_null(self, node: yaml.Node) -> bool:
        """Say whether nothing stands there."""
        return node.tag == _TAG + "null"

    def text(self, node: yaml.Node, path: str) -> str:
        """Read plain text, in which a variable is not filled in."""
        if node.tag == _TAG + "str" and isinstance(node.value, str) and node.value.strip():
            return node.value
        is_blank = node.tag == _TAG + "str"
        self.find(
            node, path, "This must not be blank." if is_blank else f"This must be text, not {_words(node)}."
        )
        return ""

    def items(self, node: yaml.Node, path: str) -> Sequence[yaml.Node]:
        """Give the nodes of a list."""
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self.find(node, path, f"This must be a list, not {_words(node)}.")
        return ()

    def pairs(
        self, node: yaml.Node, path: str, known: Sequence[str] | None = None
    ) -> Iterator[tuple[str, yaml.Node]]:
        """Give the pairs of a mapping; where its keys are ``known``, no others."""
        if not isinstance(node, yaml.MappingNode):
            wanted = f"a mapping of {', '.join(known)}" if known else "a mapping"
            self.find(node, path, f"This must be {wanted}, not {_words(node)}.")
            return
        first: dict[str, int] = {}
        for key_node, value in node.value:
            key = str(key_node.value)
            at = f"{path}.{key}" if path else key
            if key_node.tag != _TAG + "str":
                self.find(key_node, path, f"A key must be text, not {_words(key_node)}: put it in quotes.")
            elif key in first:
                self.find(key_node, at, f"The key {key!r} stands twice, on line {first[key]} already.")
            elif known is not None and key not in known:
                near = errors.nearest(key, known)
                hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
                self.find(key_node, at, f"The key {key!r} is not known here. {hint}")
            else:
                first[key] = line(key_node)
                yield key, value

    def mapping(self, node: yaml.Node, path: str) -> dict[str, Any]:
        """Read a mapping of any values, with variables filled in."""
        return {key: self.value(value, f"{path}.{key}") for key, value in self.pairs(node, path)}

    def value(self, node: yaml.Node, path: str) -> Any:
        """Read any value, with variables filled in, and None where it cannot be read."""
        if any(node is above for above in self._open):
            self.find(node, path, "This holds itself.")
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, f"{path}[{place}]") for place, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._open.pop()

    def _scalar(self, node: yaml.Node, path: str) -> Any:
        if node.tag == _TAG + "str":
            filled, problems = variables.fill(node.value, self._environ)
            for problem in problems:
                self.find(node, path, problem)
            return filled
        if node.tag not in _SCALARS:
            self.find(node, path, f"This cannot be {_words(node)}: put it in quotes to have it as text.")
            return None
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, KeyError):
            # Said to be of a kind by its tag, and not of it: "!!bool maybe".
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            self.find(node, path, f"{node.value!r} is not {_words(node)}.")
        return value


def _words(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    kind = node.tag.removeprefix(_TAG)
    return _WORDS.get(kind, f"a value of the kind {kind!r}")
