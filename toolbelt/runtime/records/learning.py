"""Learning from use: which words of searches led to which tools (TOOLBELT_LEARN_FROM_USE).

If an agent searches, and then successfully calls one of the results in the same session, the words of its search are
kept for that tool. Until then, they are in the memory of this process only. Stems and counts are kept: no requests, no
numbers, and no secrets that Toolbelt knows.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django import db

from toolbelt import conf
from toolbelt.core.search import learned, queries
from toolbelt.runtime import secrets
from toolbelt.runtime.records import record_writer
from toolbelt.store import learned_words

# How long after a search a call counts as its consequence, and how often searches take what was learned since.
SECONDS, REFRESH_SECONDS = 600.0, 30.0
# How often all words are weighed again, because they count less from day to day. Else only those of changed tools are.
_WEIGH_SECONDS = 86400.0
# For how many sessions searches are remembered, and how many searches of each; how many tools one search may lead to.
MAX_SESSIONS, MAX_SEARCHES, MAX_TOOLS = 1000, 5, 3
# Of a search, that many words are kept, and none that is longer.
_MAX_STEMS, _MAX_LENGTH = 40, 20

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Search:
    """A search of an agent: when it was, its stems, and its results that were not called yet."""

    at: float
    stems: tuple[str, ...]
    results: set[str]
    called: int = 0


@dataclass(slots=True)
class _Memory:
    """The latest searches of the sessions of this process, the sessions that searched last at the end."""

    sessions: OrderedDict[tuple[str, str], deque[_Search]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class _Loaded:
    """The cached learned words, and when they were read and weighed (in seconds of the monotonic clock)."""

    at: float = 0.0
    weighed_at: float = 0.0
    rows: learned_words.Rows = field(default_factory=dict)
    words: learned.LearnedWords | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_memory = _Memory()
_loaded = _Loaded()


def register() -> None:
    """Have searches use what was learned."""
    learned.use(words)


def words() -> learned.LearnedWords:
    """Return the learned words; none if the setting is off. In a thread that may block."""
    if not conf.LEARN_FROM_USE:
        return learned.NOTHING
    loaded = _loaded.words
    if loaded is not None and _is_fresh():
        return loaded
    if not _loaded.lock.acquire(blocking=loaded is None):
        # Another search reads them.
        return loaded or learned.NOTHING
    try:
        # Another search may have read them meanwhile.
        if (loaded := _loaded.words) is None or not _is_fresh():
            loaded = _read(loaded)
        return loaded
    except db.Error as error:
        _log.warning("learned words not read", error=str(error))
        return loaded or learned.NOTHING
    finally:
        _loaded.lock.release()


def note_search(agent: str, session: str | None, query: str, content: Mapping[str, Any]) -> None:
    """Remember a search and the tools that its answer names."""
    if not conf.LEARN_FROM_USE:
        return
    results = {result["tool"] for result in content["results"]}
    stems = _stems(query)
    if not results or not stems or query.strip() in results:
        return
    with _memory.lock:
        searches = _memory.sessions.setdefault((agent, session or ""), deque(maxlen=MAX_SEARCHES))
        searches.append(_Search(time.monotonic(), stems, results))
        _memory.sessions.move_to_end((agent, session or ""))
        while len(_memory.sessions) > MAX_SESSIONS:
            _memory.sessions.popitem(last=False)


def note_success(agent: str, session: str | None, tool: str) -> None:
    """Keep the words of the searches that led to this call, which succeeded."""
    if not conf.LEARN_FROM_USE or (agent, session or "") not in _memory.sessions:
        return
    since = time.monotonic() - SECONDS
    lessons = []
    with _memory.lock:
        for earlier in _memory.sessions.get((agent, session or ""), ()):
            if earlier.at >= since and tool in earlier.results and earlier.called < MAX_TOOLS:
                earlier.results.remove(tool)
                earlier.called += 1
                lessons.append(learned_words.Lesson(tool, agent, earlier.stems))
    for lesson in lessons:
        if not record_writer.enqueue(lesson):
            try:
                learned_words.add_all([lesson])
            except db.Error as error:
                # The tool has run, and its answer counts.
                _log.warning("words not learned", tool=tool, error=str(error))


def forget() -> None:
    """Forget what this process remembers: searches, and words that it read."""
    with _memory.lock:
        _memory.sessions.clear()
    _loaded.words = None


def count() -> learned_words.Stats:
    """Return the number of stored words and of their tools."""
    return learned_words.count()


def erase(*, tool: str = "", agent: str = "") -> int:
    """Erase the words of a tool, of an agent, or all; return the number of tools that had any.

    Other processes search without them after at most ``REFRESH_SECONDS``.
    """
    erased = learned_words.erase(tool=tool, agent=agent)
    _loaded.words = None
    return erased


def _read(loaded: learned.LearnedWords | None) -> learned.LearnedWords:
    """Return the learned words as they are now, and remember them. Only what has changed is read and weighed."""
    now = time.monotonic()
    rows = learned_words.read(_loaded.rows if loaded is not None else {})
    if loaded is None or now - _loaded.weighed_at >= _WEIGH_SECONDS:
        loaded, _loaded.weighed_at = learned.LearnedWords(learned_words.counts(rows)), now
    elif changed := _changed_tools(_loaded.rows, rows):
        of_changed = {key: row for key, row in rows.items() if key[0] in changed}
        loaded = loaded.replace(changed, learned_words.counts(of_changed))
    _loaded.rows, _loaded.words, _loaded.at = rows, loaded, now
    return loaded


def _changed_tools(before: learned_words.Rows, after: learned_words.Rows) -> set[str]:
    """Return the tools of which any row differs."""
    return {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _is_fresh() -> bool:
    return time.monotonic() - _loaded.at < REFRESH_SECONDS


def _stems(query: str) -> tuple[str, ...]:
    stems = queries.parse(secrets.mask(query).replace(secrets.MASK, ". ")).words
    return tuple(stem for stem in stems if stem.isalpha() and 1 < len(stem) <= _MAX_LENGTH)[:_MAX_STEMS]
