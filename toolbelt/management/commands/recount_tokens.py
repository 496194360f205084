"""``manage.py recount_tokens``: correct the stored token counts of tools."""

from __future__ import annotations

from typing import Any

from toolbelt.control.catalog import recounting
from toolbelt.management import terminal


class Command(terminal.Command):
    """Count every tool's tokens again."""

    help = "Count every tool's tokens again, after tools were written with raw SQL or in bulk."

    def handle(self, *args: Any, **options: Any) -> None:
        """Correct the counts, and print how many changed."""
        self.stdout.write(f"Corrected token counts: {recounting.recount_tokens()}.")
