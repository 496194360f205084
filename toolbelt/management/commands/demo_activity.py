"""``manage.py demo_activity``: generate a month of calls and changes for the demo."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.management import demo_month, demo_today, terminal
from toolbelt.runtime import calls

# Current sessions of the agents that may load toolkits.
SESSIONS = ("release-notes", "nightly-deploy", "chat-today")
MAX_DAYS, MAX_CALLS = 366, 5000


class Command(terminal.Command):
    """Generate a month of calls and changes."""

    help = "Generate a month of calls and changes for the demo, so that its pages have data to show."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the amount, the seed and --force."""
        parser.add_argument(
            "--days", metavar="N", type=int, default=30, help="the number of days (default: 30)"
        )
        parser.add_argument(
            "--size",
            metavar="N",
            type=int,
            default=140,
            help="the approximate number of calls on a weekday (default: 140)",
        )
        parser.add_argument(
            "--seed", metavar="N", type=int, default=7, help="the seed of the random data (default: 7)"
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="generate data even if there are other agents, or real calls and changes",
        )

    def handle(self, *args: Any, days: int, size: int, seed: int, force: bool, **options: Any) -> None:
        """Generate the data, and print how much it is."""
        if not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--days must be from 1 to {MAX_DAYS}.")
        if not 0 <= size <= MAX_CALLS:
            raise CommandError(f"--size must be from 0 to {MAX_CALLS}.")
        try:
            activity = demo_month.make(days=days, size=size, seed=seed, force=force)
        except errors.Refused as refused:
            raise CommandError(str(refused)) from refused
        sessions = _let_sessions_load()
        demo_today.make()
        self.stdout.write(
            f"Generated {activity.changes} changes, {activity.calls} calls and {sessions} sessions in {days} days."
        )


def _let_sessions_load() -> int:
    """Load a toolkit in some sessions, as agents do. The sessions are current: past sessions are not generated."""
    loaded = 0
    for number, summary in enumerate(queries.summaries()):
        toolkits = summary.agent.allowed_toolkits
        if toolkits and number % 2 == 0:
            answer = calls.run(
                summary.agent.key,
                "load_tools",
                {"toolkit": toolkits[0]},
                session=SESSIONS[number // 2 % len(SESSIONS)],
            )
            loaded += isinstance(answer, calls.Result)
    return loaded
