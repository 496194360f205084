"""What would operators have changed in a month? Made up for the demo, and done through the operators' own doors.

Whatever begins here ends here: a toolkit that is turned on for a task is given back, a slip is undone, a stop is
lifted. So a month of history leaves the configuration as it was, and the words in the demo's guides stay true.
"""

from __future__ import annotations

import datetime as dt
import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.control import actors, agents, holdings, stops, switches, undo, writing
from toolbelt.core import errors, loadouts
from toolbelt.store import audit

Write = Callable[..., writing.Change]
Kind = Literal["on", "off", "equip", "stop"]
# How many things begin on a weekday, and on another day.
A_DAY, A_DAY_OFF = 2.4, 0.3
# How many of the last ones end on the last day, so that there is something to be seen today.
ENDS_TODAY = 5
_PEOPLE = (
    actors.Actor(name="olive", via="screen"),
    actors.Actor(name="sam", via="screen"),
    actors.Actor(name="priya", via="admin"),
    actors.Actor(name="release-bot", via="api"),
)
_OFTEN = (6, 4, 2, 2)
_REASONS: Mapping[Kind, Sequence[str]] = {
    "on": (
        "Needs it for the migration.",
        "Asked for in the stand-up.",
        "Trial until Friday.",
        "Release week.",
        "",
    ),
    "off": ("Costs more than it brings.", "Not while the audit runs.", "Calls it for nothing.", ""),
    "equip": ("Works on files this week.", "Helps with the release.", "Trial of a smaller loadout."),
    "stop": (
        "The server answers with errors.",
        "Incident: wrong data was written.",
        "Key leaked, being replaced.",
    ),
}
_BACK: Mapping[Kind, Sequence[str]] = {
    "on": ("The trial is over.", "The migration is through.", "Works without it.", "Done.", ""),
    "off": ("Needs it after all.", "The audit is over.", "Back to normal.", ""),
    "equip": ("Back to what it had.", "The release is out."),
    "stop": ("Repaired.", "The key is a new one.", "All is well again."),
}
_SLIPS = ("Wrong agent.", "Meant the other toolkit.", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Something that begins and ends: ``begin`` and ``end`` write, ``by_undo`` ends it by taking the beginning back."""

    began: dt.datetime
    ended: dt.datetime
    who: actors.Actor
    other: actors.Actor
    begin: Write
    end: Write
    reason: str
    reason_back: str
    by_undo: bool


def stories(
    found: holdings.Holdings, dice: random.Random, days: Sequence[dt.datetime], now: dt.datetime
) -> list[Story]:
    """Make up what happens in these days, which are given by their beginnings; all of it is over before ``now``."""
    if not found.holders:
        return []
    told: list[Story] = []
    busy: dict[object, dt.datetime] = {}
    begun = sorted(at for day in days for at in _beginnings(dice, day) if at < days[-1])
    # Today people have been there since the morning, unless it is the morning.
    opens = max(days[-1], min(days[-1] + dt.timedelta(hours=8), now - dt.timedelta(hours=1)))
    late = set(range(len(begun) - ENDS_TODAY, len(begun)))
    for number, began in enumerate(begun):
        for _ in range(20):
            subject, begin, end, kind = _act(found, dice)
            if busy.get(subject, began) <= began:
                break
        else:
            continue
        slip = kind in ("on", "off") and dice.random() < 0.15
        ended = began + _lasts(dice, kind, slip)
        ended = ended if slip else _at_work(dice, ended)
        if number in late or ended >= days[-1]:
            slip = False
            ended = opens + (now - opens) * dice.uniform(0.05, 0.97)
        busy[subject] = ended
        who = dice.choices(_PEOPLE, _OFTEN)[0]
        told.append(
            Story(
                began=began,
                ended=ended,
                who=who,
                other=who if slip else dice.choices(_PEOPLE, _OFTEN)[0],
                begin=begin,
                end=end,
                reason="" if slip else dice.choice(_REASONS[kind]),
                reason_back=dice.choice(_SLIPS if slip else _BACK[kind]),
                by_undo=slip or (number not in late and dice.random() < 0.3),
            )
        )
    return told


def perform(told: Sequence[Story]) -> int:
    """Let it happen, in the order of the times, each at its own; say how many changes were made.

    What a rule forbids, such as a budget, does not happen: operators would have been told so, too.
    """
    begun: dict[int, int] = {}
    made = 0
    events = sorted(
        [(story.began, 0, number) for number, story in enumerate(told)]
        + [(story.ended, 1, number) for number, story in enumerate(told)]
    )
    late: list[int] = []
    for at, is_end, number in events:
        story = told[number]
        with audit.dated(at):
            if not is_end:
                entry = _tried(story.begin, story.who, story.reason)
                if entry is not None:
                    begun[number] = entry
                    made += 1
            elif number in begun:
                if _ended(story, begun[number]):
                    made += 1
                else:
                    late.append(number)
    # What something else stood against then can be given back when that is over, too.
    stood = len(late) + 1
    while late and len(late) < stood:
        stood = len(late)
        with audit.dated(events[-1][0]):
            late = [number for number in late if not _ended(told[number], begun[number])]
        made += stood - len(late)
    return made


def _ended(story: Story, entry: int) -> bool:
    if story.by_undo:
        taken_back = functools.partial(undo.undo, entry=entry)
        return _tried(taken_back, story.other, story.reason_back) is not None
    return _tried(story.end, story.other, story.reason_back) is not None


def _tried(write: Write, who: actors.Actor, reason: str) -> int | None:
    try:
        return write(who, reason=reason).entry
    except errors.ToolbeltError:
        return None


def _beginnings(dice: random.Random, day: dt.datetime) -> Iterator[dt.datetime]:
    often = A_DAY_OFF if day.weekday() > 4 else A_DAY
    count = int(often) + (dice.random() < often % 1)
    for _ in range(count):
        yield day + dt.timedelta(seconds=dice.randrange(8 * 3600, 18 * 3600))


def _lasts(dice: random.Random, kind: str, slip: bool) -> dt.timedelta:
    if slip:
        return dt.timedelta(seconds=dice.randrange(20, 400))
    if kind == "stop":
        return dt.timedelta(minutes=dice.randrange(25, 240))
    return dt.timedelta(hours=dice.lognormvariate(3.2, 0.9))


def _at_work(dice: random.Random, at: dt.datetime) -> dt.datetime:
    """Put off until people are there what would end by night."""
    if 8 <= at.hour < 19:
        return at
    day = at.replace(hour=0, minute=0, second=0) + dt.timedelta(days=1 if at.hour >= 19 else 0)
    return day + dt.timedelta(seconds=dice.randrange(8 * 3600, 18 * 3600))


def _act(found: holdings.Holdings, dice: random.Random) -> tuple[object, Write, Write, Kind]:
    """Choose one thing to do: what it is about, how it begins and ends, and which kind of thing that is."""
    holder = dice.choice(found.holders)
    agent = holder.agent
    chance = dice.random()
    if chance < 0.06 and found.catalog.toolkits:
        kit = dice.choice(list(found.catalog.toolkits.values()))
        if not kit.blocked:
            return (
                ("stop", kit.key),
                functools.partial(stops.stop, kind="toolkit", name=kit.key, on=True, was=False),
                functools.partial(stops.stop, kind="toolkit", name=kit.key, on=False, was=True),
                "stop",
            )
    if chance < 0.18 and agent.loadout:
        others = [name for name in loadouts.all_names(found.catalog) if name != agent.loadout]
        wanted = dice.choice(others)
        return (
            ("loadout", agent.key),
            functools.partial(agents.equip, agent=agent.key, loadout=wanted, was=agent.loadout, confirm=True),
            functools.partial(agents.equip, agent=agent.key, loadout=agent.loadout, was=wanted, confirm=True),
            "equip",
        )
    if chance < 0.6 and found.catalog.toolkits:
        key = dice.choice(list(found.catalog.toolkits))
        has_some = any(
            tool in holder.active for tool in holdings.members(found.catalog, found.catalog.toolkits[key])
        )
        return _flip("switch", agent.key, key, agent.switches.get(key), has_some)
    is_off = dice.random() < 0.6 and bool(holder.active)
    tools = holder.active if is_off else set(found.catalog.tools).difference(holder.active)
    key = dice.choice(sorted(tools or found.catalog.tools))
    return _flip("override", agent.key, key, agent.overrides.get(key), is_off)


def _flip(
    family: switches.Family, agent: str, key: str, was: bool | None, is_off: bool
) -> tuple[object, Write, Write, Kind]:
    """Turn off what the agent has, and on what it lacks; what says so already is turned round."""
    wanted = not was if was is not None else not is_off
    write = switches.flip if family == "switch" else switches.override
    named: dict[str, Any] = {"toolkit": key} if family == "switch" else {"tool": key}
    return (
        (family, agent, key),
        functools.partial(write, agent=agent, on=wanted, was=was, confirm=True, **named),
        functools.partial(write, agent=agent, on=was, was=wanted, confirm=True, **named),
        "on" if wanted else "off",
    )
