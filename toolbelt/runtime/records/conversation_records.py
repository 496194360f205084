"""What conversations were told, recorded behind their answers: batched, and lost rather than waited for.

A conversation that need be told nothing is noted at most once in :data:`SECONDS`: its requests cost a look-up each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolbelt.core import caches, request_key
from toolbelt.runtime.records import record_writer
from toolbelt.store import clock, conversations

# How often a conversation that is told nothing is noted, and how many a process remembers.
SECONDS = 600.0
MAX_REMEMBERED = 10_000

# The line of MCP clients whose lists never change.
CONSTANT = conversations.CONSTANT

_noted: caches.LruCache[tuple[str, str | None, int], float] = caches.LruCache(MAX_REMEMBERED)


class Point(NamedTuple):
    """Where a conversation is, from its tokens: see :class:`toolbelt.store.conversations.Told`."""

    chain: str
    root: str
    parent: str
    line: str
    is_in_words: bool
    entry: int
    start: tuple[str, ...] = ()


def is_due(key: request_key.RequestKey, token: str) -> bool:
    """Return whether a conversation that is at this point must be noted; it counts as noted then."""
    if not record_writer.has_room():
        return False
    name, now = (key.agent, key.session, hash(token)), time.monotonic()
    last = _noted.get(name)
    if last is not None and now - last < SECONDS:
        return False
    _noted.put(name, now)
    return True


def note(key: request_key.RequestKey, point: Point, changes: Mapping[str, Any], tokens: int) -> None:
    """Record where a conversation is, and what it was told, in about so many tokens."""
    record_writer.enqueue(
        conversations.Told(
            agent=key.agent,
            session=key.session or "",
            chain=point.chain,
            root=point.root,
            parent=point.parent,
            line=point.line,
            way="words" if point.is_in_words else "append",
            entry=point.entry,
            changes={kind: names for kind, names in changes.items() if names},
            tokens=tokens,
            at=clock.now(),
            start=point.start,
        )
    )
