"""``manage.py prune_calls --days N``: delete old call records."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from django.core.management.base import CommandError

from toolbelt.core import texts
from toolbelt.management import terminal
from toolbelt.runtime.records import recordings


class Command(terminal.Command):
    """Delete old call records."""

    help = "Delete the records of calls that are older than N days."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the --days option."""
        parser.add_argument(
            "--days", metavar="N", type=int, required=True, help="keep the calls of the last N days"
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """Delete the records, and print how many there were."""
        if days < 0:
            raise CommandError("--days must be 0 or more.")
        try:
            age = dt.timedelta(days=days)
            deleted = recordings.prune(age)
        except OverflowError as error:
            raise CommandError(f"--days {days} is too large.") from error
        self.stdout.write(f"Deleted {texts.counted(deleted, 'call')}.")
