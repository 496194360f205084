"""``manage.py backup FILE``: write the whole database into a file, while Toolbelt runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.config import backups
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Write a backup."""

    help = "Write the whole database into a file. Toolbelt may run meanwhile."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("file", metavar="FILE", type=Path, help="a new file")
        parser.add_argument(
            "--portable",
            action="store_true",
            help="of PostgreSQL too, write a file that can be restored into SQLite and PostgreSQL",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the backup, and print its size."""
        file: Path = options["file"]
        try:
            backups.backup(file, portable=options["portable"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Wrote {file} ({file.stat().st_size:,} bytes). Only its owner can read it.")
