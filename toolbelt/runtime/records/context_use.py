"""The context that agents save: the tokens that were sent, compared to those of all tools that they are allowed.

Tokens are counted once for each surface or tool list that is built. Answers add them to sums in the memory of the
process, which the writer of records stores :data:`SECONDS` seconds after the first, and at the end.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolbelt.core import catalog, definitions, schema, surface
from toolbelt.runtime.records import record_writer
from toolbelt.store import clock, context_use, token_counts

SECONDS = 5.0


class Tokens(NamedTuple):
    """The tokens of an answer, and those that it would have if it contained every allowed tool."""

    sent: int
    allowed: int


NOT_COUNTED = Tokens(0, 0)
_sums: dict[tuple[str, dt.date], list[int]] = {}
_lock = threading.Lock()
_waiting: threading.Timer | None = None


def count(built: surface.Surface, listed: Iterable[definitions.Definition] | None = None) -> Tokens:
    """Count the tokens of a surface, or of the list of an MCP client that has these tools of it."""
    resolved = built.resolution
    definitions_ = (*built.tools, *built.meta_tools) if listed is None else listed
    policy = resolved.spent.policy_tokens
    return Tokens(
        sent=policy + sum(definition.tokens or _own(definition) for definition in definitions_),
        allowed=policy + resolved.allowed_tokens,
    )


def add(agent: str, tokens: Tokens) -> None:
    """Count a surface or a tool list that was sent."""
    _add(agent, 1, tokens)


def add_result(agent: str, content: Mapping[str, Any]) -> None:
    """Count the answer of a meta-tool, which an agent with every allowed tool would not need."""
    if record_writer.has_room():
        _add(agent, 0, Tokens(sent=token_counts.count_policy(schema.canonical(content)), allowed=0))


def flush() -> None:
    """Queue the sums to be stored."""
    with _lock:
        sums = dict(_sums)
        _sums.clear()
        if _waiting is not None:
            _waiting.cancel()
    for (agent, day), (answers, sent, allowed) in sums.items():
        record_writer.enqueue(context_use.Use(agent, day, answers, sent, allowed))


# What was sent last must be queued before the writer of records stops.
stop = flush


def _add(agent: str, answers: int, tokens: Tokens) -> None:
    global _waiting
    if not record_writer.has_room():
        # Only servers write behind their answers: an answer must not wait for this.
        return
    with _lock:
        if not _sums:
            _waiting = threading.Timer(SECONDS, flush)
            _waiting.daemon = True
            _waiting.start()
        sums = _sums.setdefault((agent, clock.now().date()), [0, 0, 0])
        sums[0] += answers
        sums[1] += tokens.sent
        sums[2] += tokens.allowed


def _own(definition: definitions.Definition) -> int:
    """Return the tokens of a meta-tool, counted like those of a tool."""
    return token_counts.count_policy(
        catalog.model_json(definition.name, definition.description, definition.input_schema)
    )
