"""``manage.py purge TARGET``: remove a tool or the texts of a toolkit from every conversation."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.catalog import purging
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Remove a tool or the texts of a toolkit from every conversation."""

    help = "Remove a tool or the texts of a toolkit from every conversation: those that have read it begin again."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the target, and how it is done."""
        parser.add_argument(
            "target",
            metavar="TARGET",
            help="a tool or a toolkit, also one that was removed; toolkit:KEY or tool:KEY if both have the name",
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        parser.add_argument("--confirm", action="store_true", help="purge it; without this, nothing is done")
        parser.add_argument(
            "--dry-run", action="store_true", help="only print which conversations it concerns"
        )

    def handle(self, *args: Any, target: str, dry_run: bool, confirm: bool, **options: Any) -> None:
        """Purge it, and print what that concerns."""
        write = writing.by(getpass.getuser(), via="command", reason=options["reason"])
        try:
            kind, name = purging.find(target)
            if dry_run:
                planned, entry = purging.plan(kind, name), None
            else:
                change = purging.purge(write.replace(confirm=confirm), kind, name)
                planned, entry = change.purge, change.entry
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To purge it, add --confirm.") from error
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{kind.capitalize()} {name} {'would be' if dry_run else 'is'} purged.")
        for reason in planned.reasons:
            self.stdout.write(reason)
        self.stdout.write("Nothing was changed." if dry_run else f"Change {entry}.")
