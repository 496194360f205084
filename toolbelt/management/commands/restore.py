"""``manage.py restore FILE``: replace the database by a backup."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.config import backups
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Restore a backup."""

    help = "Replace the database by a backup. Stop Toolbelt's servers first."
    # Some read the database, which may be empty.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("file", metavar="FILE", type=Path, help="a file that `backup` wrote")
        parser.add_argument("--replace", action="store_true", help="overwrite the data that the database has")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore, and print how much the database has now."""
        try:
            counted = backups.restore(options["file"], replace=options["replace"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        numbers = backups.described(counted)
        self.stdout.write(f"Restored {options['file']} ({numbers}). Start Toolbelt's servers again.")
