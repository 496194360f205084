"""``manage.py end_grants``: record the switches and overrides that have expired."""

from __future__ import annotations

from typing import Any

from toolbelt.control.access import expirations
from toolbelt.management import terminal


class Command(terminal.Command):
    """Record expired switches and overrides."""

    help = (
        "Record expired switches and overrides in the configuration and the audit log. They expire on time"
        " without this command, and a running server records them automatically: use it with cron where no"
        " server runs."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Record them, and print how many there were."""
        written = expirations.write_due()
        self.stdout.write(f"{written} expired." if written else "Nothing has expired since the last run.")
