"""What would the demo look like after a month of use? (``manage.py demo_activity``)"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import demo_activity, queries
from toolbelt.core import errors
from toolbelt.management import terminal
from toolbelt.runtime import calls

# Sessions that are under way, of the agents that may load something.
SESSIONS = ("release-notes", "nightly-deploy", "chat-today")
MOST_DAYS, MOST_CALLS = 366, 5000


class Command(terminal.Command):
    """Make up a month of calls and changes."""

    help = "Fill the demo with a made-up month of calls and changes, so that its pages show something."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take how much, and the seed."""
        parser.add_argument("--days", metavar="N", type=int, default=30, help="how many days (30)")
        parser.add_argument(
            "--size", metavar="N", type=int, default=140, help="about how many calls on a weekday (140)"
        )
        parser.add_argument(
            "--seed", metavar="N", type=int, default=7, help="another one makes another month (7)"
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="also where there are other agents, or real calls and changes",
        )

    def handle(self, *args: Any, days: int, size: int, seed: int, force: bool, **options: Any) -> None:
        """Make it up, say how much it is."""
        if not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--days is from 1 to {MOST_DAYS}.")
        if not 0 <= size <= MOST_CALLS:
            raise CommandError(f"--size is from 0 to {MOST_CALLS}.")
        try:
            made = demo_activity.make(days=days, size=size, seed=seed, force=force)
        except errors.Refused as refused:
            raise CommandError(str(refused)) from refused
        sessions = _let_sessions_load()
        self.stdout.write(
            f"Made up {made.changes} changes, {made.calls} calls and {sessions} sessions in {days} days."
        )


def _let_sessions_load() -> int:
    """Let some sessions load a toolkit as agents do: that is done now, as sessions have no past."""
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
