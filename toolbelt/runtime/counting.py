"""What came before a call, for the gate rules that read it, and what a call adds to that directly before it runs
(docs/semantics.md: Counts).

Counts and labels are in the database, so that they hold for all processes. A process keeps the first identical calls of
the limit that applies by default to itself, because almost no call is repeated: it is a few calls late, never early.
"""

from __future__ import annotations

import datetime as dt
import functools
import threading
from collections.abc import Collection, Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import catalog, gate_rules, request_key, schema, sessions
from toolbelt.runtime.records import recordings
from toolbelt.store import agent_sessions, call_counts, clock

# The part of the default limit that a process counts alone, and how many different calls it remembers.
_ALONE = 50
_REMEMBERED = 20_000


class Repetitions:
    """How often this process made each identical call lately. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, tuple[dt.datetime, int]] = {}

    def of(self, subject: str, resets: dt.datetime) -> int:
        """Return how often the call was made until it is counted again."""
        counted = self._calls.get(subject)
        return counted[1] if counted is not None and counted[0] == resets else 0

    def add(self, subject: str, resets: dt.datetime) -> int:
        """Count a call; return how often it was made."""
        with self._lock:
            calls = self.of(subject, resets) + 1
            if len(self._calls) >= _REMEMBERED and subject not in self._calls:
                # Those that were made first.
                for old in list(self._calls)[: _REMEMBERED // 2]:
                    del self._calls[old]
            self._calls[subject] = (resets, calls)
            return calls

    def clear(self) -> None:
        """Forget all of them."""
        self._calls.clear()


repetitions = Repetitions()


@functools.lru_cache(1)
def _breaker(calls: int) -> catalog.GateRule:
    return gate_rules.breaker(calls)


def past(
    key: request_key.RequestKey,
    session: sessions.Session | None,
    *,
    tool: str,
    client_session: str = "",
    at: dt.datetime,
    is_quick: bool = False,
    counted: Collection[str] = (),
    brought: Collection[str] = (),
    answered: Collection[str] = (),
) -> gate_rules.Past:
    """Return what came before a call of a tool. ``client_session`` is the session that its MCP client has of its own.
    ``counted`` and ``answered`` are as in :class:`gate_rules.Past`, and ``brought`` are the labels that the call itself
    has brought. With ``is_quick``, schema.TooComplexError is raised where the database would be read.
    """
    one = key.session or client_session
    has_breaker = bool(one) and conf.IDENTICAL_CALLS
    return gate_rules.Past(
        labels=None if key.session is None else sessions.label_names(session).difference(brought),
        count=functools.partial(_count, at, is_quick),
        identity=functools.partial(_identity, key, one, tool),
        session=one,
        breaker=_breaker(conf.IDENTICAL_CALLS) if has_breaker else None,
        counted=counted,
        answered=answered,
    )


def _count(at: dt.datetime, is_quick: bool, count: gate_rules.Count) -> int:
    resets = count.limit.resets(at)
    if _is_alone(count, repetitions.of(count.subject, resets)):
        return 0
    if is_quick:
        raise schema.TooComplexError
    return call_counts.calls(count.rule.key, count.subject, resets)


def _identity(key: request_key.RequestKey, session: str, tool: str, arguments: Mapping[str, Any]) -> str:
    return recordings.identity([session, key.subagent, tool, arguments])


def _is_breaker(count: gate_rules.Count) -> bool:
    return count.rule is _breaker(conf.IDENTICAL_CALLS)


def _is_alone(count: gate_rules.Count, calls: int) -> bool:
    """Return whether a process counts this many identical calls without telling the others."""
    return _is_breaker(count) and calls < count.limit.calls // _ALONE


def take_at_once(counts: Collection[gate_rules.Count]) -> bool:
    """Count a call if this needs no database; return False, and count nothing, if it does."""
    if len(counts) != 1:
        return False
    (count,) = counts
    resets = count.limit.resets(clock.now())
    if not _is_alone(count, repetitions.of(count.subject, resets) + 1):
        return False
    repetitions.add(count.subject, resets)
    return True


def take(
    key: request_key.RequestKey,
    tool: str,
    counts: Collection[gate_rules.Count],
    brings: Collection[str],
) -> gate_rules.Count | None:
    """Count a call and label its session, in the current transaction, which ends directly before the tool runs. Return
    the count that is full, if one is: the transaction must then be rolled back.
    """
    now = clock.now()
    # In one order, so that calls wait for each other and not in a circle.
    for count in sorted(counts, key=lambda count: (count.rule.key, count.subject)):
        resets, calls = count.limit.resets(now), 1
        if _is_breaker(count):
            here = repetitions.add(count.subject, resets)
            if _is_alone(count, here):
                continue
            # With those that this process counted alone.
            calls = here if _is_alone(count, here - 1) else 1
        limit = count.limit.calls if count.is_limited else None
        if not call_counts.add(count.rule.key, count.subject, resets, calls=calls, limit=limit):
            return count
    if brings and key.session is not None:
        agent_sessions.bring(key.agent, key.session, brings, tool)
    return None
