"""The tools that an operator may mean by what they type."""

from __future__ import annotations

from collections.abc import Sequence

from toolbelt.core import catalog, search
from toolbelt.web.kit import words

MAX_OPTIONS = 20


def split_keys(stored: catalog.Catalog, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that are keys of tools, and those that are not. If the names are words to search for, none of
    them is a key: "search arxiv" is not a list of keys, although a tool is called arxiv.
    """
    known = [name for name in names if name in stored.tools]
    unknown = [name for name in names if name not in stored.tools]
    is_list = len(known) > len(unknown) or all("_" in name for name in unknown)
    return (known, unknown) if known and is_list else ([], list(names))


def find(stored: catalog.Catalog, text: str, limit: int = MAX_OPTIONS) -> list[catalog.Tool]:
    """Return the tools that the text finds: first those with these names, then in the order of an agent's search."""
    if not text.strip():
        return []
    keys = [tool.key for tool in stored.tools.values() if not tool.retired]
    exact = [name for name in text.split() if name in stored.tools]
    named = [key for key in keys if words.contains(text, key, stored.tools[key].title)][:limit]
    found = [hit.tool for hit in search.search(stored, keys, text, limit)]
    return [stored.tools[key] for key in dict.fromkeys([*exact, *named, *found])][:limit]
