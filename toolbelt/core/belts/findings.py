"""Where in a belt is something wrong, and how is that said?

Rules find things by their place inside one entry, a tuple such as ``("members", 2)``. Here a place gets its
path (``toolkits.dev.members[2]``), findings get their order, that of the document, and names that nothing
has get their nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolbelt.core import errors, keys

Place = tuple[str | int, ...]

# Comparing names costs: a belt of ten thousand tools with a thousand misspelt members must be answered too.
MOST_COMPARISONS = 100_000


class Found(NamedTuple):
    """One thing that is wrong at a place inside an entry.

    Where it is a ``name`` that nothing has, ``among`` are the names that would have been right, and ``otherwise``
    is said where none of them looks like it.
    """

    at: Place
    message: str
    name: str = ""
    among: Collection[str] = ()
    otherwise: str = ""


def missing(at: Place, what: str, name: str, among: Collection[str]) -> Found:
    """Find that there is no ``what`` of this name."""
    if what.startswith("tool") and keys.fold(name) in keys.RESERVED:
        return Found(at, f"{name!r} is one of Toolbelt's own tools, which come by themselves: take it out.")
    return Found(at, f"There is no {what} named {name!r}.", name, among, "Add it first, or take it out here.")


def part(key: object, position: int) -> str | int:
    """Give the part of a place that a mapping's key makes: itself, or its position where it is blank or no text."""
    return key if isinstance(key, str) and key.strip() else position


def address(section: str, name: object, position: int) -> str:
    """Give the path of an entry: its section with its name, or its ``[index]`` where the name is blank or no text."""
    return section + _text((part(name, position),))


class Hints:
    """What to say after a finding: the nearest names, as long as comparing them is worth its time in one check."""

    def __init__(self) -> None:
        self._left = MOST_COMPARISONS

    def after(self, found: Found) -> str:
        """Give the sentence that shows the way out of a finding, empty where its message has said it."""
        self._left -= len(found.among)
        near = errors.nearest(found.name, found.among) if found.among and self._left >= 0 else ()
        return f"Did you mean {' or '.join(near)}?" if near else found.otherwise


def problems(where: str, entry: Any, found: Iterable[Found], hints: Hints) -> Iterator[errors.Problem]:
    """Turn what was found inside an entry into problems, in its order; ``where`` is its path (empty: the document)."""
    order = _Order()
    for one in sorted(found, key=lambda one: order.of(entry, one.at)):
        path = (where + _text(one.at)).removeprefix(".")
        yield errors.Problem(path=path, message=f"{one.message} {hints.after(one)}".rstrip())


def _text(place: Place) -> str:
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)


class _Order:
    """The order of places inside one entry; what a place names that is not there (a missing key) comes last."""

    def __init__(self) -> None:
        self._positions: dict[int, dict[Any, int]] = {}

    def of(self, entry: Any, place: Place) -> tuple[int, ...]:
        ranks = []
        node = entry
        for one in place:
            rank, node = self._step(node, one)
            ranks.append(rank)
        return tuple(ranks)

    def _step(self, node: Any, one: str | int) -> tuple[int, Any]:
        if isinstance(node, Mapping):
            known = self._positions.get(id(node))
            if known is None:
                known = self._positions[id(node)] = {key: rank for rank, key in enumerate(node)}
            rank = one if isinstance(one, int) else known.get(one, len(known))
            return rank, node.get(one)
        if isinstance(node, Sequence) and isinstance(one, int) and one < len(node):
            return one, node[one]
        return (one if isinstance(one, int) else 0), None
