"""The conversations of an agent as operators see them: what each was told, when, and who changed it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolbelt.store import audit, conversations

# How many are shown, the latest first.
MAX_COUNT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a conversation was told at one time. ``by`` are those whose changes since the entry before may be why."""

    told: conversations.Told
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation and everything that it was told, the newest first."""

    stored: conversations.Conversation
    entries: tuple[Entry, ...]


def prune(age: dt.timedelta | None = None) -> int:
    """Delete the records of conversations that last asked longer ago than this; return their number."""
    return conversations.prune(age)


def of(agent: str) -> tuple[Conversation, ...]:
    """Return the conversations that asked last. Uses a fixed number of queries."""
    latest = conversations.latest(agent, MAX_COUNT)
    times = [told.at for conversation in latest for told in conversation.told]
    changes = audit.actors_between(min(times), max(times)) if times else []
    return tuple(
        Conversation(stored=one, entries=tuple(_entries(agent, one.told, changes))) for one in latest
    )


def _entries(
    agent: str, told: tuple[conversations.Told, ...], changes: Iterable[audit.Act]
) -> Iterator[Entry]:
    times: dict[str, dt.datetime] = {each.chain: each.at for each in told}
    for each in told:
        since = times.get(each.parent)
        names = {name for kind in each.changes.values() for name in kind}
        # A section of the policy is named by its kind and its key.
        names |= {name.partition(" ")[2] for name in names if " " in name}
        by = [
            act.actor
            for act in changes
            if since is not None
            and since <= act.at <= each.at
            and ((act.kind, act.subject) == ("agent", agent) or not names.isdisjoint((act.subject, act.key)))
        ]
        yield Entry(told=each, by=tuple(dict.fromkeys(by)))
