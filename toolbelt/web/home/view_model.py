"""The first page: what operators look up first, with links to where it is done."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Sequence

from django.urls import reverse
from django.utils import timezone

from toolbelt.control.reports import first_steps, overview, queries, usage
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import durations, entries, pieces, words
from toolbelt.web.review import concerns

DAYS = 30
MAX_AGENTS = 14
MAX_CONCERNS = 8
MAX_CHANGES = 6
# The sparkline, in its own units.
STEP, HEIGHT = 10, 64


def page(*, may_see_calls: bool, may_undo: Callable[[queries.Entry], bool]) -> pieces.View:
    """Return the page."""
    today = timezone.localdate()
    first = today - dt.timedelta(days=DAYS - 1)
    loaded = overview.load(
        today=durations.midnight(today),
        most=MAX_CHANGES,
        most_agents=MAX_AGENTS,
        calls_since=durations.midnight(first) if may_see_calls else None,
    )
    more = concerns.count(loaded.attention) - MAX_CONCERNS
    count = len(loaded.attention.agents)
    begun = first_steps.load()
    rest = loaded.today.total - len(loaded.today.entries)
    return pieces.View(
        configured=bool(count),
        steps=_steps(begun) if begun else (),
        offers_demo=begun is not None and begun.is_empty,
        summary=f"{words.counted(count, 'agent')}, {words.tools(loaded.total)} in the catalog",
        concerns=tuple(itertools.islice(concerns.lines(loaded.attention), MAX_CONCERNS)),
        more_concerns=f"and {words.number(more)} more" if more > 0 else "",
        entries=tuple(entries.present(entry, may_undo(entry)) for entry in loaded.today.entries),
        more_entries=f"{words.number(rest)} more today" if rest else "All changes",
        last=""
        if loaded.last is None
        else f"{entries.sentence(loaded.last)}, {words.moment(loaded.last.at).words}",
        usage=_usage(loaded.calls, first, today) if loaded.calls else None,
        may_see_calls=may_see_calls,
        agents=tuple(map(agents.present, loaded.listed)),
        more_agents=f"All {words.number(count)} agents" if count > MAX_AGENTS else "",
    )


def _steps(begun: first_steps.FirstSteps) -> tuple[pieces.View, ...]:
    """Return the first steps; ``is_next`` is the first that is not done. ``to`` is the permission that it needs."""
    agent = [begun.agent] if begun.agent else []
    every = [
        (
            begun.has_server,
            "Add a server",
            "An MCP server, or your own program, is where tools come from.",
            reverse("web:add_server"),
            "Add server",
            "toolbelt.add_plugin",
        ),
        (
            begun.is_reviewed,
            "Review its tools",
            "No agent gets a tool of a server before you approve it.",
            reverse("web:review"),
            "Review",
            "toolbelt.change_tool",
        ),
        (
            bool(begun.agent),
            "Create an agent",
            "It decides which tools a model receives.",
            reverse("web:new_agent"),
            "New agent",
            "toolbelt.add_agent",
        ),
        (
            begun.is_connected,
            "Connect it",
            "With Claude Code, Cursor, an agent framework, or your own code.",
            reverse("web:connect", args=agent) if agent else "",
            "Connect",
            "",
        ),
        (
            False,
            "Call a tool",
            "Ask the agent for something that needs one of its tools. These steps then disappear.",
            reverse("web:agent_access", args=agent) if agent else "",
            "View its tools",
            "",
        ),
    ]
    following = [not done for done, *_ in every].index(True)
    return tuple(
        pieces.View(
            is_done=done, title=title, about=about, url=url, act=act, to=to, is_next=number == following
        )
        for number, (done, title, about, url, act, to) in enumerate(every)
    )


def _usage(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    by_day = {usage.day: usage for usage in usage_by_day}
    days = [first + dt.timedelta(days=number) for number in range((last - first).days + 1)]
    calls = [by_day[day].calls if day in by_day else 0 for day in days]
    wrong = [by_day[day].refused + by_day[day].failed if day in by_day else 0 for day in days]
    most, total, errors = max(calls), sum(calls), sum(wrong)
    if not total:
        return None
    points = [_point(place, count, most) for place, count in enumerate(calls)]
    width = STEP * (len(days) - 1)
    busiest = days[calls.index(most)]
    before, week = sum(calls[-14:-7]), sum(calls[-7:])
    # A week with few calls is not compared with.
    change = f", {words.signed(round(100 * (week - before) / before))} %" if before >= 20 else ""
    return pieces.View(
        line=" ".join(points),
        area=" ".join([f"0,{HEIGHT}", *points, f"{width},{HEIGHT}"]),
        wrong=" ".join(_point(place, count, most) for place, count in enumerate(wrong)),
        width=width,
        height=HEIGHT,
        words=f"{words.number(total)} calls in {len(days)} days, the most on {busiest:%-d %B}: {words.number(most)}; "
        f"{words.number(errors)} with errors",
        first=f"{days[0]:%-d %b}",
        last="today",
        figures=(
            pieces.View(number=words.number(calls[-1]), about="calls today", is_key=False),
            pieces.View(number=words.number(week), about=f"in 7 days{change}", is_key=False),
            pieces.View(
                number=f"{100 * errors / total:.1f} %",
                about=f"errors in {len(days)} days",
                is_key=True,
            ),
        ),
    )


def _point(place: int, count: int, most: int) -> str:
    # Room for the line's own width at both ends.
    return f"{place * STEP},{HEIGHT - 2 - round((HEIGHT - 4) * count / most, 1)}"
