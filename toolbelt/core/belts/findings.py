"""Findings of the checks, their paths and their order.

Rules report a finding by its path inside an entry, a tuple such as ``("members", 2)``. This module writes the path
as text (``toolkits.dev.members[2]``), sorts findings in the order of the document, and suggests similar names for
names that do not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolbelt.core import errors, keys

Path = tuple[str | int, ...]

# Comparing names is slow: a belt of ten thousand tools with a thousand misspelled members must be checked as well.
MAX_COMPARISONS = 100_000


class Finding(NamedTuple):
    """One problem at a path inside an entry.

    If the problem is a ``name`` that does not exist, ``among`` are the names that do, and ``otherwise`` is the hint if
    none of them is similar.
    """

    at: Path
    message: str
    name: str = ""
    among: Collection[str] = ()
    otherwise: str = ""


def missing(at: Path, kind: str, name: str, among: Collection[str]) -> Finding:
    """Return the finding that there is no entry of this ``kind`` with this name."""
    if kind.startswith("tool") and keys.fold(name) in keys.RESERVED:
        return Finding(at, f"{name!r} is one of Toolbelt's own tools, which every agent gets: remove it.")
    return Finding(at, f"There is no {kind} named {name!r}.", name, among, "Add it first, or remove it here.")


def part(key: object, position: int) -> str | int:
    """Return the part of a path for a mapping's key: the key, or its position if it is blank or not text."""
    return key if isinstance(key, str) and key.strip() else position


def address(section: str, name: object, position: int) -> str:
    """Return the path of an entry: its section with its name, or its ``[index]`` if the name is not a valid key."""
    return section + _text((part(name, position),))


class Hints:
    """Suggestions that follow a finding: similar names, until one check has compared too many of them."""

    def __init__(self) -> None:
        self._left = MAX_COMPARISONS

    def suggestion_for(self, finding: Finding) -> str:
        """Return the suggestion for a finding; empty if its message includes it."""
        self._left -= len(finding.among)
        near = errors.nearest(finding.name, finding.among) if finding.among and self._left >= 0 else ()
        return f"Did you mean {' or '.join(near)}?" if near else finding.otherwise


def problems(where: str, entry: Any, items: Iterable[Finding], hints: Hints) -> Iterator[errors.Problem]:
    """Yield the problems for findings inside an entry, in its order; ``where`` is the entry's path (empty: the
    document).
    """
    order = _Order()
    for item in sorted(items, key=lambda item: order.of(entry, item.at)):
        path = (where + _text(item.at)).removeprefix(".")
        yield errors.Problem(path=path, message=f"{item.message} {hints.suggestion_for(item)}".rstrip())


def _text(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


class _Order:
    """The order of paths inside one entry. Paths of missing keys come last."""

    def __init__(self) -> None:
        self._positions: dict[int, dict[Any, int]] = {}

    def of(self, entry: Any, path: Path) -> tuple[int, ...]:
        ranks = []
        node = entry
        for step in path:
            rank, node = self._step(node, step)
            ranks.append(rank)
        return tuple(ranks)

    def _step(self, node: Any, step: str | int) -> tuple[int, Any]:
        if isinstance(node, Mapping):
            positions = self._positions.get(id(node))
            if positions is None:
                positions = self._positions[id(node)] = {key: rank for rank, key in enumerate(node)}
            rank = step if isinstance(step, int) else positions.get(step, len(positions))
            return rank, node.get(step)
        if isinstance(node, Sequence) and isinstance(step, int) and step < len(node):
            return step, node[step]
        return (step if isinstance(step, int) else 0), None
