"""Which switches and overrides are over? (``manage.py end_grants``)"""

from __future__ import annotations

from typing import Any

from toolbelt.control import endings
from toolbelt.management import terminal


class Command(terminal.Command):
    """Write down what is over."""

    help = (
        "Write into rows and audit log which switches and overrides have ended. They are over at their second"
        " without it, and a server does it by itself: this is for cron, where none runs."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it, say how much it was."""
        written = endings.write_due()
        self.stdout.write(f"{written} ended." if written else "Nothing has ended since the last time.")
