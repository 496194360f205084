"""Which tools of a server are rejected when it first lists them: by its own names for them, with ``*`` for any text.

The lists come with a server that was imported from a client's file, in which its user had left out tools.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import re2

from toolbelt.core import catalog


def is_rejected(plugin: catalog.Plugin, name: str) -> bool:
    """Return whether a server's tool with this name is rejected at its first listing."""
    is_left_out = bool(plugin.reject_all_but) and not matches(name, plugin.reject_all_but)
    return is_left_out or matches(name, plugin.reject_tools)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns is this name, with ``*`` for any text."""
    return any(pattern == name or ("*" in pattern and _form(pattern).fullmatch(name)) for pattern in patterns)


def not_listed(plugin: catalog.Plugin, names: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of both lists that no tool with one of the server's names for them matches yet."""
    listed = [*names]
    patterns = dict.fromkeys((*plugin.reject_tools, *plugin.reject_all_but))
    return tuple(pattern for pattern in patterns if not any(matches(name, [pattern]) for name in listed))


@functools.lru_cache(1_024)
def _form(pattern: str) -> Any:
    return re2.compile("(?s)" + ".*".join(map(re2.escape, pattern.split("*"))))
