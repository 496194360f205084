"""``manage.py end_grants``: record the switches and overrides that have expired."""

from __future__ import annotations

from typing import Any

from toolbelt.control.access import expirations
from toolbelt.management import terminal


class Command(terminal.Command):
    """Record switches and overrides that have ended."""

    help = (
        "Record in the audit log which switches and overrides have ended. They end on time without this command, and"
        " a running server records ends automatically: run this from cron only if no server runs."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Record them, and print how many there were."""
        written = expirations.record_due()
        self.stdout.write(f"{written} ended." if written else "Nothing has ended since the last run.")
