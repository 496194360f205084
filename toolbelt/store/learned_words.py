"""Learned words: added in bulk, limited in number, and decaying with time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from django.db import models as orm
from django.db import transaction
from django.db.models import signals

from toolbelt import models
from toolbelt.store import clock

# The time after which the count of a word is halved, and the count below which a word is deleted.
HALF_LIFE = dt.timedelta(days=30)
MIN_COUNT = 0.2
MAX_COUNT = 10.0
# The maximum numbers of words of a tool and agent, of agents of a tool, and of rows in total.
MAX_WORDS, MAX_AGENTS, MAX_ROWS = 60, 20, 5_000


class Lesson(NamedTuple):
    """Words of a request of an agent that a tool served."""

    tool: str
    agent: str
    stems: tuple[str, ...]


# The words that were learned for each tool and agent, and when they last grew.
Rows = Mapping[tuple[str, str], tuple[dt.datetime, Mapping[str, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The numbers of stored words, and of tools that have any."""

    words: int
    tools: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The numbers of tools with learned words, and of agents that the words came from."""

    tools: int
    agents: int


def connect() -> None:
    """Delete the words of every agent that is deleted, by any write: a new agent of its name starts without them."""
    signals.post_delete.connect(_agent_deleted, sender=models.Agent, dispatch_uid="toolbelt.learned_words")


def add_all(lessons: Iterable[Lesson]) -> None:
    """Add the words of these requests in one transaction, and delete the oldest rows beyond the limits."""
    now = clock.now()
    by_row: dict[tuple[str, str], list[Lesson]] = {}
    for lesson in lessons:
        by_row.setdefault((lesson.tool, lesson.agent), []).append(lesson)
    grown: set[str] = set()
    with transaction.atomic():
        # In order, and deleted at the end, so that two processes do not wait for each other's rows.
        for (tool, agent), learned in sorted(by_row.items()):
            row, is_new = models.LearnedWords.objects.select_for_update().get_or_create(
                tool=tool, agent=agent, defaults={"words": {}, "at": now}
            )
            row.words, row.at = _added(_decayed(row.words, now - row.at), learned), now
            row.save(update_fields=["words", "at"])
            if is_new:
                grown.add(tool)
        for tool in sorted(grown):
            _delete_beyond(models.LearnedWords.objects.filter(tool=tool), MAX_AGENTS)
        if grown:
            _delete_beyond(models.LearnedWords.objects.all(), MAX_ROWS)


def read(previous: Rows = MappingProxyType({})) -> Rows:
    """Return the stored words of each tool and agent; only those that changed since ``previous`` are read."""
    stamps = {
        (tool, agent): at
        for tool, agent, at in models.LearnedWords.objects.values_list("tool", "agent", "at")
    }
    rows = {key: previous[key] for key, at in stamps.items() if key in previous and previous[key][0] == at}
    if len(rows) < len(stamps):
        since = min(at for key, at in stamps.items() if key not in rows)
        changed = models.LearnedWords.objects.filter(at__gte=since)
        rows |= {
            (tool, agent): (at, words)
            for tool, agent, at, words in changed.values_list("tool", "agent", "at", "words")
        }
    return rows


def counts(rows: Rows) -> list[tuple[str, Mapping[str, float]]]:
    """Return the words of each tool and agent, with their decayed counts."""
    now = clock.now()
    return [(tool, _decayed(words, now - at)) for (tool, _), (at, words) in sorted(rows.items())]


def count() -> Stats:
    """Return the number of stored words. It reads them all; :func:`coverage` is fast enough for pages."""
    words: dict[str, set[str]] = {}
    for tool, counted in counts(read()):
        if counted:
            words.setdefault(tool, set()).update(counted)
    return Stats(words=sum(map(len, words.values())), tools=len(words))


def coverage() -> Coverage:
    """Return the numbers of tools and agents with stored words, without reading the words."""
    counted = models.LearnedWords.objects.aggregate(
        tools=orm.Count("tool", distinct=True), agents=orm.Count("agent", distinct=True)
    )
    return Coverage(**counted)


def erase(*, tool: str = "", agent: str = "") -> int:
    """Delete the words of a tool, of an agent, or all; return the number of tools that had any."""
    filters = {name: value for name, value in (("tool", tool), ("agent", agent)) if value}
    rows = models.LearnedWords.objects.filter(**filters)
    with transaction.atomic():
        tools = rows.values("tool").distinct().count()
        rows.delete()
    return tools


def _agent_deleted(instance: models.Agent, **kwargs: Any) -> None:
    models.LearnedWords.objects.filter(agent=instance.key).delete()


def _decayed(words: Mapping[str, float], age: dt.timedelta) -> dict[str, float]:
    share = 0.5 ** max(0.0, age / HALF_LIFE)
    return {stem: count * share for stem, count in words.items() if count * share >= MIN_COUNT}


def _added(words: dict[str, float], learned: Sequence[Lesson]) -> dict[str, float]:
    for lesson in learned:
        for stem in lesson.stems:
            words[stem] = min(words.get(stem, 0.0) + 1, MAX_COUNT)
    strongest = sorted(words, key=lambda stem: (-words[stem], stem))[:MAX_WORDS]
    return {stem: round(words[stem], 3) for stem in strongest}


def _delete_beyond(rows: orm.QuerySet[models.LearnedWords], maximum: int) -> None:
    """Delete the rows that are older than the newest ``maximum``, except those that another process is writing."""
    if oldest := list(rows.order_by("-at", "-pk").values_list("pk", flat=True)[maximum:]):
        unused = models.LearnedWords.objects.filter(pk__in=oldest).select_for_update(skip_locked=True)
        models.LearnedWords.objects.filter(pk__in=list(unused.values_list("pk", flat=True))).delete()
