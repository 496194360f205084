"""Are the stored token counts those of the tools as they are? (``manage.py recount_tokens``)"""

from __future__ import annotations

from typing import Any

from toolbelt.control import catalog
from toolbelt.management import terminal


class Command(terminal.Command):
    """Count every tool's tokens anew."""

    help = "Count every tool's tokens anew, after tools were written by raw SQL or in bulk."

    def handle(self, *args: Any, **options: Any) -> None:
        """Count, and say how many counts were not right."""
        self.stdout.write(f"{catalog.recount_tokens()} counts were not right, and are now.")
