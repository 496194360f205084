"""What does a switchboard look like that has been in use? The demo, with a month of changes and calls behind it.

It is made up from a seed: the same one gives the same month before the same moment. It never mixes with what really
happened, unless somebody asks for just that.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from toolbelt import conf
from toolbelt.control import demo_calls, demo_changes, holdings
from toolbelt.core import errors
from toolbelt.store import audit, calls, entries

# The demo is known by its agents.
AGENTS = frozenset(
    {
        "assistant",
        "explorer",
        "runner",
        "planner",
        "reviewer",
        "generalist",
        "release-captain",
        "support-desk",
        "data-analyst",
        "tech-writer",
        "kiosk",
        "omni",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How many changes and calls were made up."""

    changes: int
    calls: int


def make(*, days: int, size: int, seed: int, force: bool = False, now: dt.datetime | None = None) -> Made:
    """Make up that many days up to ``now``, with about ``size`` calls on a weekday.

    All of it or nothing. Raises Refused for a database that is not the demo's, or in which something happened that
    was not made up here, unless ``force``.
    """
    with transaction.atomic():
        if not force:
            _refuse_what_is_real()
        now = now or timezone.now()
        dice = random.Random(seed)  # noqa: S311  the same for the same seed is what is wanted
        found = holdings.every()
        beginnings = _days(now, days)
        told = demo_changes.stories(found, dice, beginnings, now)
        made = sorted(
            demo_calls.calls(found, dice, beginnings, now, size), key=lambda one: (one["at"], one["agent"])
        )
        return Made(changes=demo_changes.perform(told), calls=calls.record_all(made))


def _refuse_what_is_real() -> None:
    there = set(entries.names("agent"))
    if there - AGENTS or not there:
        what = f"It has the agent {min(there - AGENTS)!r}" if there else "It has no agent"
        raise errors.Refused(
            f"This is not the demo's database. {what}; load the demo into an empty database"
            f" ({conf.COMMAND} loaddata demo), or say --force to mix made-up calls and changes with what is here."
        )
    if calls.any_there() or audit.page(size=1).total:
        raise errors.Refused(
            "Something has happened here already, and what is made up would not be told from it: begin afresh"
            " (make clean-demo), or say --force."
        )


def _days(now: dt.datetime, count: int) -> list[dt.datetime]:
    """Give the beginnings of so many days, as the clock of the installation has them, up to today's."""
    today = timezone.localtime(now).date()
    return [
        timezone.make_aware(dt.datetime.combine(today - dt.timedelta(days=back), dt.time.min))
        for back in range(count - 1, -1, -1)
    ]
