"""``manage.py move_database --to URL``: copy everything into another database, of the same or the other kind."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.config import backups
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Copy everything into another database."""

    help = "Copy everything into another database, SQLite or PostgreSQL. Stop Toolbelt's servers first."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("--to", metavar="URL", required=True, help="its address, as for DATABASE_URL")
        parser.add_argument("--replace", action="store_true", help="overwrite the data that it has")

    def handle(self, *args: Any, **options: Any) -> None:
        """Copy, and print what to do next."""
        try:
            backups.move(options["to"], replace=options["replace"])
        except errors.ToolbeltError as error:
            # The other database's process knows the address as DATABASE_URL.
            raise CommandError(str(error).replace("DATABASE_URL", "--to")) from error
        self.stdout.write(
            "Copied everything. Set DATABASE_URL to the new address, and start Toolbelt's servers again. The old"
            " database is unchanged."
        )
