"""Which calls need no longer be kept? (``manage.py prune_calls --days N``)"""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from django.core.management.base import CommandError

from toolbelt.management import terminal
from toolbelt.runtime import recording


class Command(terminal.Command):
    """Forget old call records."""

    help = "Delete the records of calls that came in longer ago than this."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the age."""
        parser.add_argument(
            "--days", metavar="N", type=int, required=True, help="keep those of the last N days"
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """Delete them, say how many."""
        if days < 0:
            raise CommandError("--days is 0 or more.")
        try:
            age = dt.timedelta(days=days)
            forgotten = recording.prune(age)
        except OverflowError as error:
            raise CommandError(f"--days {days} is longer than there are calendars.") from error
        self.stdout.write(f"{forgotten} calls forgotten.")
