"""The picture of which loadout extends which: boxes in columns, from the roots on the left to what extends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import catalog, keys, loadouts
from toolbelt.web.kit import pieces

# In pixels.
WIDTH, HEIGHT, ACROSS, BETWEEN, EDGE = 152, 52, 28, 12, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    name: str
    column: int
    row: int
    parent: str

    @property
    def x(self) -> int:
        return EDGE + self.column * (WIDTH + ACROSS)

    @property
    def y(self) -> int:
        return EDGE + self.row * (HEIGHT + BETWEEN)


def draw(stored: catalog.Catalog, names: Iterable[str], here: str = "") -> pieces.View:
    """Draw these loadouts; ``here`` is the one whose page shows the picture."""
    wanted = {keys.fold(name): name for name in names}
    known = {**loadouts.BUILT_IN, **stored.loadouts}
    parents = {folded: keys.fold(known[folded].parent) if folded in known else "" for folded in wanted}
    placed = _placed(wanted, parents)
    return pieces.View(
        width=max((box.x for box in placed.values()), default=EDGE - WIDTH) + WIDTH + EDGE,
        height=max((box.y for box in placed.values()), default=EDGE - HEIGHT) + HEIGHT + EDGE,
        box_width=WIDTH,
        box_height=HEIGHT,
        nodes=tuple(_node(stored, box, placed, here) for box in placed.values()),
        lines=tuple(_line(placed[box.parent], box) for box in placed.values() if box.parent in placed),
    )


def family(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """Return the names of what the loadout extends, of itself, and of what extends it, at any distance."""
    above = [link.name for link in reversed(loadouts.chain(stored.loadouts, name))]
    folded = keys.fold(name)
    below = [
        other
        for other in loadouts.all_names(stored)
        if keys.fold(other) != folded
        and any(keys.fold(link.name) == folded for link in loadouts.chain(stored.loadouts, other))
    ]
    return tuple(dict.fromkeys((*above, *below)))


def _placed(wanted: Mapping[str, str], parents: Mapping[str, str]) -> dict[str, _Box]:
    """Return each its column and row: what extends something stands to its right, the first of them in its row."""
    placed: dict[str, _Box] = {}
    row = 0

    def place(folded: str, column: int, parent: str) -> None:
        nonlocal row
        placed[folded] = _Box(name=wanted[folded], column=column, row=row, parent=parent)
        first = True
        for child in wanted:
            if parents[child] == folded and child not in placed:
                row += 0 if first else 1
                first = False
                place(child, column + 1, folded)

    # Roots first; then whatever is left goes round in a circle, and is cut open somewhere.
    for folded in (*(name for name in wanted if parents[name] not in wanted), *wanted):
        if folded not in placed:
            place(folded, 0, "")
            row += 1
    return placed


def _node(stored: catalog.Catalog, box: _Box, placed: Mapping[str, _Box], here: str) -> pieces.View:
    tools = loadouts.tools_included(stored, box.name)
    return pieces.View(
        box=box,
        parent=placed[box.parent].name if box.parent in placed else "",
        tools=len(tools),
        tokens=sum(stored.tools[key].tokens for key in tools),
        here=keys.fold(box.name) == keys.fold(here),
        built_in=keys.fold(box.name) not in stored.loadouts,
    )


def _line(parent: _Box, child: _Box) -> str:
    """Return the path from the middle of a box's right side to the middle of another's left side."""
    x1, y1 = parent.x + WIDTH, parent.y + HEIGHT // 2
    x2, y2 = child.x, child.y + HEIGHT // 2
    middle = x1 + ACROSS // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
