"""The diagram of inheritance: boxes in columns, from root loadouts on the left to those that extend them."""

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


class Diagram(pieces.View):
    """The diagram of these loadouts; ``current`` is the one whose page shows it."""

    def __init__(self, stored: catalog.Catalog, names: Iterable[str], current: str = "") -> None:
        shown_names = {keys.fold(name): name for name in names}
        known = {**loadouts.BUILT_IN, **stored.loadouts}
        parents = {
            folded: keys.fold(known[folded].parent) if folded in known else "" for folded in shown_names
        }
        boxes = _place_boxes(shown_names, parents)
        self.width = max((box.x for box in boxes.values()), default=EDGE - WIDTH) + WIDTH + EDGE
        self.height = max((box.y for box in boxes.values()), default=EDGE - HEIGHT) + HEIGHT + EDGE
        self.box_width = WIDTH
        self.box_height = HEIGHT
        self.nodes = tuple(_Node(stored, box, boxes, current) for box in boxes.values())
        self.lines = tuple(_line(boxes[box.parent], box) for box in boxes.values() if box.parent in boxes)


def family(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """Return the names of all ancestors of a loadout, of itself, and of all its descendants."""
    above = [link.name for link in reversed(loadouts.chain(stored.loadouts, name))]
    folded = keys.fold(name)
    below = [
        other
        for other in loadouts.all_names(stored)
        if keys.fold(other) != folded
        and any(keys.fold(link.name) == folded for link in loadouts.chain(stored.loadouts, other))
    ]
    return tuple(dict.fromkeys((*above, *below)))


def _place_boxes(names: Mapping[str, str], parents: Mapping[str, str]) -> dict[str, _Box]:
    """Return the boxes with their columns and rows: children are to the right of their parent, the first in its row."""
    boxes: dict[str, _Box] = {}
    row = 0

    def place(folded: str, column: int, parent: str) -> None:
        nonlocal row
        boxes[folded] = _Box(name=names[folded], column=column, row=row, parent=parent)
        first = True
        for child in names:
            if parents[child] == folded and child not in boxes:
                row += 0 if first else 1
                first = False
                place(child, column + 1, folded)

    # Roots first; the remaining loadouts form cycles, which start anywhere.
    for folded in (*(name for name in names if parents[name] not in names), *names):
        if folded not in boxes:
            place(folded, 0, "")
            row += 1
    return boxes


class _Node(pieces.View):
    """A box of the diagram."""

    def __init__(self, stored: catalog.Catalog, box: _Box, boxes: Mapping[str, _Box], current: str) -> None:
        tools = loadouts.tools_included(stored, box.name)
        self.box = box
        self.parent = boxes[box.parent].name if box.parent in boxes else ""
        self.tools = len(tools)
        self.tokens = sum(stored.tools[key].tokens for key in tools)
        self.is_current = keys.fold(box.name) == keys.fold(current)
        self.built_in = keys.fold(box.name) not in stored.loadouts


def _line(parent: _Box, child: _Box) -> str:
    """Return the SVG path from the right side of a box to the left side of another."""
    x1, y1 = parent.x + WIDTH, parent.y + HEIGHT // 2
    x2, y2 = child.x, child.y + HEIGHT // 2
    middle = x1 + ACROSS // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
