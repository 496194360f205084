"""``manage.py prune_conversations [--days N]``: delete what old conversations learned."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control.reports import told_conversations
from toolbelt.core import texts
from toolbelt.management import terminal


class Command(terminal.Command):
    """Delete what conversations learned that were not seen recently."""

    help = "Delete what conversations learned that were not seen in the last N days."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the --days option."""
        parser.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=conf.CONVERSATIONS_DAYS,
            help="keep conversations of the last N days (default: the setting TOOLBELT_CONVERSATIONS_DAYS)",
        )

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """Delete it, and print how many there were."""
        if days < 0:
            raise CommandError("--days must be 0 or more.")
        try:
            deleted = told_conversations.prune(dt.timedelta(days=days))
        except OverflowError as error:
            raise CommandError(f"--days {days} is too large.") from error
        self.stdout.write(f"Deleted {texts.counted(deleted, 'record')}.")
