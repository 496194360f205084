"""Generation of a month of activity for the demo: changes by several people, and tool calls by its agents.

Everything follows from a seed, and happens in its order, while the clock shows its time: changes are made through the
same functions as operators' changes, and calls pass the gate, which decides by what is configured then. Each change is
taken back before the next, so that the configuration stays the same.
"""

from __future__ import annotations

import datetime as dt
import functools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from toolbelt import conf
from toolbelt.control import undo, writing
from toolbelt.control.access import access_index, switches
from toolbelt.control.agents import agents, session_changes
from toolbelt.control.catalog import blocking
from toolbelt.control.reports import context_saved, queries, usage
from toolbelt.core import errors, loadouts
from toolbelt.management import demo_calls
from toolbelt.runtime import surfaces
from toolbelt.runtime.records import context_use

# The demo is recognized by its agents.
AGENTS = frozenset(
    {
        *("assistant", "explorer", "runner", "planner", "reviewer", "generalist"),
        *("release-captain", "support-desk", "data-analyst", "tech-writer", "kiosk", "omni"),
    }
)
CHANGES_TODAY = 5
SESSION_AGE = dt.timedelta(days=2)

_PEOPLE = (
    writing.by("olive", via="screen"),
    writing.by("sam", via="screen"),
    writing.by("priya", via="admin"),
    writing.by("release-bot", via="api"),
)
_REASONS: Mapping[str, Sequence[str]] = {
    "on": ("Needs it for the migration.", "Asked for in the stand-up.", "Release week.", ""),
    "off": ("Costs more than it brings.", "Not while the audit runs.", "Calls it for nothing.", ""),
    "equip": ("Works on files this week.", "Trial of a smaller loadout."),
    "stop": ("The server answers with errors.", "Incident: wrong data was written."),
}
_REASONS_BACK = ("The trial has ended.", "Works without it.", "Back to normal.", "Done.", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The number of changes and calls that were generated."""

    changes: int
    calls: int


def make(*, days: int, size: int, seed: int, force: bool = False, now: dt.datetime | None = None) -> Activity:
    """Generate the days up to ``now``, with about ``size`` calls on a weekday, in one transaction.

    Raise Refused, unless ``force``, if the database is not the demo's, or already has calls or changes.
    """
    with transaction.atomic():
        index = access_index.load()
        if not force:
            _refuse_real_data({access.agent.key for access in index.agents})
        now = now or timezone.now()
        dice = random.Random(seed)  # noqa: S311 - the same seed has to make the same month
        today = timezone.localtime(now).date()
        dates = [today - dt.timedelta(days=back) for back in reversed(range(days))]
        midnights = [timezone.make_aware(dt.datetime.combine(date, dt.time.min)) for date in dates]
        changes = [
            (begin, end, _plan_change(index, dice, is_today=begin >= midnights[-1]))
            for begin, end in _change_times(dice, midnights, now)
        ]
        calls = list(demo_calls.plan(index, dice, midnights, now, size))
        events: list[tuple[dt.datetime, Callable[[], object]]] = [(call.at, call.make) for call in calls]
        for begin, end, change in changes:
            events += [(begin, change.begin), (end, change.end)]
        for at, happen in sorted(events, key=lambda event: event[0]):
            with writing.at(at):
                happen()
        context_saved.add_all(_context_use(calls))
        with writing.at(now):
            # As the command that runs every night does.
            session_changes.prune(SESSION_AGE)
        return Activity(changes=sum(change.count for _, _, change in changes), calls=len(calls))


def _refuse_real_data(keys: set[str]) -> None:
    if keys - AGENTS or not keys:
        finding = f"It has the agent {min(keys - AGENTS)!r}" if keys else "It has no agent"
        raise errors.Refused(
            f"This is not the demo's database. {finding}; load the demo into an empty database"
            f" ({conf.COMMAND} demo), or add --force to mix generated calls and changes with the real ones."
        )
    if usage.page(size=1).total or queries.changes(size=1).total:
        raise errors.Refused(
            "This database already has calls or changes, which could not be distinguished from generated ones."
            " Start again (make clean-demo), or add --force."
        )


def _change_times(
    dice: random.Random, midnights: Sequence[dt.datetime], now: dt.datetime
) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    """Yield when each change is made and undone: by day, and one after the other."""
    for midnight in midnights:
        count = dice.choice((0, 0, 1) if midnight.weekday() > 4 else (2, 2, 3))
        opens, hours = midnight + dt.timedelta(hours=8), dt.timedelta(hours=10)
        if midnight == midnights[-1]:
            count = CHANGES_TODAY
            opens = max(midnight, min(opens, now - dt.timedelta(hours=1)))
            hours = now - opens
        times = sorted(opens + hours * dice.uniform(0.02, 0.97) for _ in range(2 * count))
        yield from zip(times[::2], times[1::2], strict=True)


@dataclass(slots=True, kw_only=True)
class _Change:
    """A change that is made at one time, by ``first``, and taken back at a later one, by ``second``.

    ``make`` and ``revert`` write it; ``entry`` is its audit entry once it is made, and ``count`` the number of changes.
    """

    make: Callable[[writing.Write], writing.Change]
    revert: Callable[[writing.Write], writing.Change]
    first: writing.Write
    second: writing.Write
    by_undo: bool
    entry: int | None = None
    count: int = 0

    def begin(self) -> None:
        """Make the change, unless a rule forbids it or its reversal."""
        try:
            # A budget may not let it be taken back.
            with transaction.atomic():
                self.make(self.first)
                self.revert(self.second)
                transaction.set_rollback(True)
        except errors.ToolbeltError:
            return
        self.entry = self.make(self.first).entry
        self.count = int(self.entry is not None)

    def end(self) -> None:
        """Take the change back, if it was made."""
        if self.entry is None:
            return
        if self.by_undo:
            undo.undo(self.second, self.entry)
        else:
            self.revert(self.second)
        self.count += 1


def _plan_change(index: access_index.AccessIndex, dice: random.Random, *, is_today: bool) -> _Change:
    change, field, was, new, kind = _choose(index, dice)
    first, second = dice.choices(_PEOPLE, (6, 4, 2, 2), k=2)
    return _Change(
        make=functools.partial(change, was=was, **{field: new}),
        revert=functools.partial(change, was=new, **{field: was}),
        first=first.replace(reason=dice.choice(_REASONS[kind]), confirm=True),
        second=second.replace(reason=dice.choice(_REASONS_BACK), confirm=True),
        # Today's stay, so that there is something to undo.
        by_undo=not is_today and dice.random() < 0.35,
    )


def _choose(
    index: access_index.AccessIndex, dice: random.Random
) -> tuple[Callable[..., writing.Change], str, Any, Any, str]:
    """Return a function that writes, the argument that it changes, the old and new value, and the kind of reason."""
    access = dice.choice(index.agents)
    agent, toolkits = access.agent, index.catalog.toolkits
    chance = dice.random()
    if chance < 0.06 and toolkits:
        toolkit = toolkits[dice.choice(list(toolkits))]
        stop = functools.partial(blocking.set_blocked, kind="toolkit", name=toolkit.key)
        return stop, "on", toolkit.blocked, not toolkit.blocked, "stop"
    if chance < 0.18 and agent.loadout:
        others = [name for name in loadouts.all_names(index.catalog) if name != agent.loadout]
        equip = functools.partial(agents.equip, agent=agent.key)
        return equip, "loadout", agent.loadout, dice.choice(others), "equip"
    if chance < 0.6 and toolkits:
        key = dice.choice(list(toolkits))
        was, has_it = agent.switches.get(key), key in access.toolkits
        change = functools.partial(switches.flip, agent=agent.key, toolkit=key)
    else:
        key = dice.choice(sorted(dice.choice((access.active, index.catalog.tools)) or index.catalog.tools))
        was, has_it = agent.overrides.get(key), key in access.active
        change = functools.partial(switches.override, agent=agent.key, tool=key)
    new = not (has_it if was is None else was)
    return change, "on", was, new, "on" if new else "off"


def _context_use(calls: Sequence[demo_calls.Call]) -> Iterator[context_saved.Use]:
    """Yield what agents were sent if each call came after a request for the surface that its agent has now."""
    counts = Counter((call.key.agent, call.at.astimezone(dt.UTC).date()) for call in calls)
    tokens = {agent: context_use.count(surfaces.ask(agent)) for agent in {agent for agent, _ in counts}}
    for (agent, day), count in sorted(counts.items()):
        sent, allowed = tokens[agent]
        yield context_saved.Use(agent, day, count, count * sent, count * allowed)
