"""Generation of a month of activity for the demo: changes by several people, and tool calls by its agents.

Everything follows from a seed. Changes are made through the same functions as operators' changes, at generated times,
and each is undone before the next, so that the configuration stays the same.
"""

from __future__ import annotations

import datetime as dt
import functools
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from toolbelt import conf
from toolbelt.control import undo, writing
from toolbelt.control.access import access_index, switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking
from toolbelt.control.reports import context_saved, queries, usage
from toolbelt.core import errors, loadouts
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

_FAILURES = (
    ("tool-failed", "The server answered 502."),
    ("tool-failed", "Rate limit exceeded, try again in 40 s."),
    ("timed-out", "No answer within 30 s."),
)
# How likely a call is at each hour.
_HOURS = (1, 1, 1, 1, 1, 2, 4, 8, 14, 18, 19, 18, 13, 16, 19, 19, 17, 13, 8, 6, 5, 4, 2, 1)


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
        changes = sum(
            _change_and_take_back(index, dice, begin, end, is_today=begin >= midnights[-1])
            for begin, end in _change_times(dice, midnights, now)
        )
        calls = sorted(
            _calls(index, dice, midnights, now, size), key=lambda call: (call["at"], call["agent"])
        )
        context_saved.add_all(_context_use(calls))
        return Activity(changes=changes, calls=usage.record_all(calls))


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


def _change_and_take_back(
    index: access_index.AccessIndex,
    dice: random.Random,
    begin: dt.datetime,
    end: dt.datetime,
    *,
    is_today: bool,
) -> int:
    """Make a change and undo it. Return the number of changes: two, or none if a rule forbids the change."""
    change, field, was, new, kind = _choose(index, dice)
    first, second = dice.choices(_PEOPLE, (6, 4, 2, 2), k=2)
    # Today's stay, so that there is something to undo.
    by_undo = not is_today and dice.random() < 0.35
    reason, reason_back = dice.choice(_REASONS[kind]), dice.choice(_REASONS_BACK)
    try:
        with transaction.atomic():
            with writing.dated(begin):
                write = first.replace(reason=reason, confirm=True)
                entry = change(write, **{field: new}, was=was).entry
            if entry is None:
                return 0
            with writing.dated(end):
                write = second.replace(reason=reason_back, confirm=True)
                if by_undo:
                    undo.undo(write, entry)
                else:
                    change(write, **{field: was}, was=new)
    except errors.ToolbeltError:
        return 0
    return 2


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


def _calls(
    index: access_index.AccessIndex,
    dice: random.Random,
    midnights: Sequence[dt.datetime],
    now: dt.datetime,
    size: int,
) -> Iterator[dict[str, Any]]:
    """Yield calls for ``usage.record_all``: more on weekdays and in the daytime, and more from week to week."""
    accesses = [access for access in index.agents if access.active]
    if not accesses:
        return
    # Each agent uses a few of its tools, and some agents make more calls than others.
    favourites = [dice.sample(sorted(access.active), min(10, len(access.active))) for access in accesses]
    weights = [dice.uniform(0.3, 1.7) for _ in accesses]
    # On one day, the plugin that most agents depend on is down.
    down_at = midnights[len(midnights) * 2 // 3] if len(midnights) > 3 else None
    plugins = sorted(index.catalog.tools[tool].plugin for tools in favourites for tool in tools)
    down = statistics.mode(filter(None, plugins)) if any(plugins) else ""
    for number, midnight in enumerate(midnights, 1):
        share = 0.25 if midnight.weekday() > 4 else 1.0
        count = round(size * share * (0.55 + 0.45 * number / len(midnights)) * dice.uniform(0.8, 1.15))
        for agent_number in dice.choices(range(len(accesses)), weights, k=count):
            hour: int = dice.choices(range(24), _HOURS)[0]
            at = midnight + dt.timedelta(hours=hour, seconds=dice.randrange(3600))
            tools = favourites[agent_number]
            tool = tools[min(int(dice.expovariate(0.32)), len(tools) - 1)]
            call = _call(dice, accesses[agent_number], tool, at, down if midnight == down_at else None)
            if at < now:
                yield call


def _context_use(calls: Sequence[Mapping[str, Any]]) -> Iterator[context_saved.Use]:
    """Yield what agents were sent if each call came after a request for the surface that its agent has now."""
    counts = Counter((call["agent"], call["at"].astimezone(dt.UTC).date()) for call in calls)
    tokens = {agent: context_use.count(surfaces.ask(agent)) for agent in {agent for agent, _ in counts}}
    for (agent, day), count in sorted(counts.items()):
        sent, allowed = tokens[agent]
        yield context_saved.Use(agent, day, count, count * sent, count * allowed)


def _call(
    dice: random.Random, access: access_index.AgentAccess, tool: str, at: dt.datetime, down: str | None
) -> dict[str, Any]:
    took = max(1, round(dice.lognormvariate(5.4, 1.0)))
    outcome, error = "ok", ""
    chance = dice.random()
    if down and access.catalog.tools[tool].plugin == down and dice.random() < 0.7:
        outcome, error, took = "tool-unavailable", f"The plugin {down} does not answer.", 0
    elif chance < 0.02:
        outcome, error = dice.choice(_FAILURES)
        took = 30_000 if outcome == "timed-out" else took
    elif chance < 0.028:
        outcome, error, took = "invalid-arguments", "limit: 500 is more than 100", 0
    elif chance < 0.034:
        tool = dice.choice(("create_pull_request", "send_email", "python"))
        outcome, error, took = "unknown-tool", f"There is no tool named {tool}.", 0
    elif chance < 0.046 and (denied := sorted(set(access.catalog.tools) - access.active)):
        tool = dice.choice(denied)
        outcome, error, took = "tool-denied", f"{tool} is not allowed here.", 0
    session = f"chat-{at:%m%d}-{dice.randrange(1, 9)}"
    stored = access.catalog.tools.get(tool)
    return {
        "at": at,
        "agent": access.agent.key,
        "session": session,
        "request_id": f"{session}-{dice.randrange(1, 40)}",
        "tool": tool,
        "plugin": stored.plugin if stored else "",
        "outcome": outcome,
        "error": error,
        "duration_ms": took,
        "arguments_bytes": dice.randrange(12, 700),
        "result_bytes": int(dice.lognormvariate(7.5, 1.1)) if outcome == "ok" else 0,
    }
