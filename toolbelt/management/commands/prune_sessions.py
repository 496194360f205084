"""Which sessions need no longer be kept? (``manage.py prune_sessions --days N``)"""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import sessions
from toolbelt.management import terminal


class Command(terminal.Command):
    """Forget sessions that have loaded nothing for long."""

    help = "Forget the sessions that last loaded or unloaded something longer ago than this."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the age."""
        parser.add_argument(
            "--days", metavar="N", type=int, required=True, help="keep those of the last N days"
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """Forget them, say how many."""
        if days < 0:
            raise CommandError("--days is 0 or more.")
        try:
            forgotten = sessions.prune(dt.timedelta(days=days))
        except OverflowError as error:
            raise CommandError(f"--days {days} is longer than there are calendars.") from error
        self.stdout.write(f"{forgotten} sessions forgotten.")
