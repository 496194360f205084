"""``manage.py prune_sessions --days N``: delete old sessions."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.agents import session_changes
from toolbelt.core import texts
from toolbelt.management import terminal


class Command(terminal.Command):
    """Delete sessions that have not loaded or unloaded anything recently."""

    help = "Delete the sessions that have not loaded or unloaded anything in the last N days."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the --days option."""
        parser.add_argument(
            "--days", metavar="N", type=int, required=True, help="keep sessions of the last N days"
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """Delete the sessions, and print how many there were."""
        if days < 0:
            raise CommandError("--days must be 0 or more.")
        try:
            deleted = session_changes.prune(dt.timedelta(days=days))
        except OverflowError as error:
            raise CommandError(f"--days {days} is too large.") from error
        self.stdout.write(f"Deleted {texts.counted(deleted, 'session')}.")
