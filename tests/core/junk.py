"""Invalid belt documents for property tests: spoiled valid documents, and arbitrary JSON."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from tests.core import strategies
from toolbelt.core import belts


@st.composite
def spoiled_documents(draw: st.DrawFn) -> strategies.Document:
    """Return a valid document in which some values were replaced, removed or duplicated."""
    document = copy.deepcopy(draw(strategies.documents()))
    junk = strategies.JSON | st.sampled_from(
        ["load_tools", "ghost", "  ", "git__status", "GIT", "(", "minimal", float("nan"), 10**400]
    )
    for _ in range(draw(st.integers(1, 4))):
        node: Any = document
        while True:
            inside = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not inside:
                break
            key = draw(st.sampled_from(inside))
            if isinstance(node[key], (dict, list)) and draw(st.booleans()):
                node = node[key]
                continue
            match draw(st.sampled_from(["overwrite", "remove", "duplicate"])):
                case "overwrite":
                    node[key] = draw(junk)
                case "remove":
                    del node[key]
                case "duplicate" if isinstance(node, list):
                    node.append(copy.deepcopy(node[key]))
                case _:
                    node[draw(strategies.TEXT)] = draw(junk)
            break
    return document


@st.composite
def junk_documents(draw: st.DrawFn) -> Any:
    """Return arbitrary JSON, and JSON that has the keys of a belt in the wrong places."""
    text, anything = strategies.TEXT, strategies.JSON
    words = [*belts.KINDS["agent"].fields, *belts.KINDS["toolkit"].fields, "name", "status", "any", "tool"]
    entry = st.dictionaries(st.sampled_from(words) | text, anything, max_size=5) | anything
    sections = st.sampled_from([kind.section for kind in belts.KINDS.values()])
    worded = st.dictionaries(sections | text, st.lists(entry, max_size=3) | anything, max_size=4)
    return draw(worded | anything)
