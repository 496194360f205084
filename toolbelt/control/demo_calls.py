"""Which calls would agents have made in a month? Made up for the demo, and the same ones for the same seed.

Each agent keeps to a few of its tools and leaves the others alone, as agents do; it works more on weekdays and by day,
and more from week to week. Now and then a tool breaks, a model asks for what it may not have, and on one day a server
is down.
"""

from __future__ import annotations

import collections
import datetime as dt
import random
from collections.abc import Iterator, Sequence
from typing import Any

from toolbelt.control import holdings

# How many tools an agent keeps to, and by how much it comes back to the first of them more often than to the next.
KEEPS_TO = (5, 14)
FAVOURS = 0.32
_BROKEN = (
    ("tool-failed", "The server answered 502."),
    ("tool-failed", "Rate limit exceeded, try again in 40 s."),
    ("tool-failed", "No such file or directory."),
    ("timed-out", "No answer within 30 s."),
)
_INVALID = ("query: is required", "limit: 500 is more than 100", "path: 12 is not a string")
_INVENTED = ("create_pull_request", "send_email", "python", "browser_search")
# What a day looks like: how likely a call is at each hour.
_HOURS = (1, 1, 1, 1, 1, 2, 4, 8, 14, 18, 19, 18, 13, 16, 19, 19, 17, 13, 8, 6, 5, 4, 2, 1)


def calls(
    found: holdings.Holdings, dice: random.Random, days: Sequence[dt.datetime], now: dt.datetime, size: int
) -> Iterator[dict[str, Any]]:
    """Make up calls, each as store.calls.record takes one: about ``size`` on a weekday of the last week, fewer before.

    ``days`` are the beginnings of the days; nothing happens later than ``now``.
    """
    working = [_Worker(holder, dice) for holder in found.holders if holder.active]
    if not working:
        return
    down = days[len(days) * 2 // 3] if len(days) > 3 else None
    # What most depend on is missed most.
    used = collections.Counter(plugin for worker in working for plugin in worker.plugins)
    broken = max(sorted(used), key=used.__getitem__, default="")
    for number, day in enumerate(days):
        share = 0.25 if day.weekday() > 4 else 1.0
        wanted = size * share * (0.55 + 0.45 * (number + 1) / len(days)) * dice.uniform(0.8, 1.15)
        for worker in dice.choices(working, [worker.weight for worker in working], k=round(wanted)):
            at = day + dt.timedelta(seconds=_second(dice))
            one = worker.call(dice, at, broken if day == down else None)
            if at < now:
                yield one


def _second(dice: random.Random) -> int:
    hour: int = dice.choices(range(24), _HOURS)[0]
    return hour * 3600 + dice.randrange(3600)


class _Worker:
    """One agent at its work."""

    def __init__(self, holder: holdings.Holder, dice: random.Random) -> None:
        self._agent = holder.agent.key
        self._stored = holder.catalog.tools
        active = sorted(holder.active)
        self._used = dice.sample(active, min(dice.randint(*KEEPS_TO), len(active)))
        self._denied = sorted(
            key
            for toolkit, on in holder.agent.switches.items()
            if not on and toolkit in holder.catalog.toolkits
            for key in holdings.members(holder.catalog, holder.catalog.toolkits[toolkit])
        )
        self._loadable = sorted(holder.standing.loadable)
        self._usual = {key: dice.lognormvariate(5.4, 1.0) for key in self._used}
        self.weight = dice.uniform(0.3, 1.7)
        self.plugins = {self._stored[key].plugin for key in self._used if self._stored[key].plugin}

    def call(self, dice: random.Random, at: dt.datetime, broken: str | None) -> dict[str, Any]:
        tool = self._used[min(int(dice.expovariate(FAVOURS)), len(self._used) - 1)]
        outcome, error, took = self._ended(dice, tool, broken)
        chance = dice.random()
        if outcome == "ok" and chance < 0.012 and self._denied:
            tool, took = dice.choice(self._denied), 0
            outcome, error = "tool-denied", f"{tool} is not allowed here."
        elif outcome == "ok" and chance < 0.018:
            tool, took = dice.choice(_INVENTED), 0
            outcome, error = "unknown-tool", f"There is no tool named {tool}."
        elif chance > 0.975 and self._loadable:
            tool, took, outcome, error = "load_tools", dice.randrange(2, 9), "ok", ""
        session = f"chat-{at:%m%d}-{dice.randrange(1, 9)}"
        known = self._stored.get(tool)
        return {
            "at": at,
            "agent": self._agent,
            "session": session,
            "request_id": f"{session}-{dice.randrange(1, 40)}",
            "tool": tool,
            "plugin": known.plugin if known else "",
            "outcome": outcome,
            "error": error,
            "duration_ms": took,
            "arguments_bytes": dice.randrange(12, 700),
            "result_bytes": int(dice.lognormvariate(7.5, 1.1)) if outcome == "ok" else 0,
        }

    def _ended(self, dice: random.Random, tool: str, broken: str | None) -> tuple[str, str, int]:
        took = max(1, round(self._usual[tool] * dice.lognormvariate(0, 0.45)))
        if broken is not None and self._stored[tool].plugin == broken and dice.random() < 0.7:
            return "tool-unavailable", f"The plugin {broken} does not answer.", 0
        chance = dice.random()
        if chance < 0.02:
            outcome, error = dice.choice(_BROKEN)
            return outcome, error, 30_000 if outcome == "timed-out" else took
        if chance < 0.028:
            return "invalid-arguments", dice.choice(_INVALID), 0
        return "ok", "", took
