"""Spikes of errors: plugins with far more errors in an hour of the last day than at that hour of the weeks before.

One query reads the last day, and two more only if a plugin had many errors in an hour; nothing here writes.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from toolbelt.core import error_spikes
from toolbelt.store import call_figures, clock

# The hours in which spikes are found, the current one included, and the weeks that they are compared with.
HOURS, WEEKS = 24, 4
# The most different errors that are read of all spikes.
MAX_ERRORS = 200
_HOUR, _WEEK = dt.timedelta(hours=1), dt.timedelta(weeks=1)
_HOURS_OF_WEEK = _WEEK // _HOUR

Errors = call_figures.Errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """The hours of the last day in which a plugin had a spike of errors (empty: calls of tools without a plugin).

    ``errors`` is their number, from the time ``first`` to ``last``; so many are ``usual`` in these hours. ``kinds`` are
    the errors by agent, tool and message, the most frequent first, without rare ones.
    """

    plugin: str
    errors: int
    usual: int
    first: dt.datetime
    last: dt.datetime
    kinds: Sequence[Errors]


def load() -> tuple[Spike, ...]:
    """Return the spikes of the last day, the one with the most errors first."""
    this_hour = clock.now().replace(minute=0, second=0, microsecond=0)
    since = this_hour - (HOURS - 1) * _HOUR
    frequent = call_figures.hours_with_errors(since, minimum=error_spikes.MIN_ERRORS)
    if not frequent:
        return ()
    start = since - WEEKS * _WEEK
    days = [(start + week * _WEEK, start + week * _WEEK + HOURS * _HOUR) for week in range(WEEKS + 1)]
    figures = {
        (figure.plugin, figure.hour): figure
        for figure in call_figures.errors_by_hour({plugin for plugin, _ in frequent}, start, days)
    }

    def hour_of(plugin: str, number: int) -> error_spikes.Hour:
        figure = figures.get((plugin, number))
        return error_spikes.Hour(figure.calls, figure.errors) if figure else error_spikes.Hour(0, 0)

    spikes: dict[str, list[tuple[call_figures.ErrorsOfHour, int]]] = collections.defaultdict(list)
    for plugin, hour in frequent:
        now = hour + WEEKS * _HOURS_OF_WEEK
        before = [hour_of(plugin, hour + week * _HOURS_OF_WEEK) for week in range(WEEKS)]
        if error_spikes.is_spike(hour_of(plugin, now), before):
            spikes[plugin].append((figures[plugin, now], error_spikes.usual(before)))
    return _with_kinds(spikes) if spikes else ()


def _with_kinds(spikes: dict[str, list[tuple[call_figures.ErrorsOfHour, int]]]) -> tuple[Spike, ...]:
    during = {
        plugin: (
            min(figure.first for figure, _ in hours if figure.first),
            max(figure.last for figure, _ in hours if figure.last),
        )
        for plugin, hours in spikes.items()
    }
    kinds = call_figures.most_frequent_errors(during, maximum=MAX_ERRORS)
    found = [
        Spike(
            plugin=plugin,
            errors=sum(figure.errors for figure, _ in hours),
            usual=sum(usual for _, usual in hours),
            first=during[plugin][0],
            last=during[plugin][1],
            kinds=tuple(kind for kind in kinds if kind.plugin == plugin),
        )
        for plugin, hours in spikes.items()
    ]
    return tuple(sorted(found, key=lambda spike: (-spike.errors, spike.plugin)))
