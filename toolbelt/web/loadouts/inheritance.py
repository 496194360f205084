"""The picture of which loadout extends which: boxes in columns, from the roots on the left to what extends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import catalog, keys, loadouts
from toolbelt.web.kit import pieces, words

# In pixels.
WIDTH, HEIGHT, ACROSS, BETWEEN, EDGE = 152, 52, 28, 12, 2
# What stands in a box of this width.
MAX_LETTERS = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    name: str
    column: int
    row: int
    parent: str


def draw(stored: catalog.Catalog, names: Iterable[str], here: str = "") -> pieces.View:
    """Draw these loadouts; ``here`` is the one whose page it stands on."""
    wanted = {keys.fold(name): name for name in names}
    known = {**loadouts.BUILT_IN, **stored.loadouts}
    parents = {folded: keys.fold(known[folded].parent) if folded in known else "" for folded in wanted}
    placed = _placed(wanted, parents)
    rows = max((box.row for box in placed.values()), default=-1) + 1
    columns = max((box.column for box in placed.values()), default=-1) + 1
    return pieces.View(
        width=columns * WIDTH + max(0, columns - 1) * ACROSS + 2 * EDGE,
        height=rows * HEIGHT + max(0, rows - 1) * BETWEEN + 2 * EDGE,
        box_width=WIDTH,
        box_height=HEIGHT,
        nodes=tuple(_node(stored, box, placed, here) for box in placed.values()),
        lines=tuple(_line(placed[box.parent], box) for box in placed.values() if box.parent in placed),
        words=" ".join(
            f"{box.name} extends {placed[box.parent].name if box.parent in placed else 'nothing'}."
            for box in placed.values()
        ),
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


def _placed(wanted: Mapping[str, str], parents: Mapping[str, str]) -> dict[str, _Placed]:
    """Return each its column and row: what extends something stands to its right, the first of them in its row."""
    placed: dict[str, _Placed] = {}
    row = 0

    def place(folded: str, column: int, parent: str) -> None:
        nonlocal row
        placed[folded] = _Placed(name=wanted[folded], column=column, row=row, parent=parent)
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


def _node(stored: catalog.Catalog, box: _Placed, placed: Mapping[str, _Placed], here: str) -> pieces.View:
    tools = loadouts.tools_included(stored, box.name)
    tokens = sum(stored.tools[key].tokens for key in tools)
    size = f"{words.tools(len(tools))} · {words.about(tokens)}"
    parent = placed[box.parent].name if box.parent in placed else ""
    return pieces.View(
        name=box.name,
        shown=box.name if len(box.name) <= MAX_LETTERS else f"{box.name[: MAX_LETTERS - 1]}…",
        size=size,
        x=EDGE + box.column * (WIDTH + ACROSS),
        y=EDGE + box.row * (HEIGHT + BETWEEN),
        here=keys.fold(box.name) == keys.fold(here),
        built_in=keys.fold(box.name) not in stored.loadouts,
        about=f"{box.name}{f', extends {parent}' if parent else ''}: {size} tokens",
    )


def _line(parent: _Placed, child: _Placed) -> str:
    """Return the path from the middle of a box's right side to the middle of another's left side."""
    x1 = EDGE + parent.column * (WIDTH + ACROSS) + WIDTH
    y1 = EDGE + parent.row * (HEIGHT + BETWEEN) + HEIGHT // 2
    x2, y2 = EDGE + child.column * (WIDTH + ACROSS), EDGE + child.row * (HEIGHT + BETWEEN) + HEIGHT // 2
    middle = x1 + ACROSS // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
