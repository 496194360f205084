"""``manage.py loaddata``: Django's command, which loads the demo over a configuration only with ``--overwrite``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import base
from django.core.management.base import CommandError
from django.core.management.commands import loaddata

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.management import terminal

FIXTURE = "demo"


class Command(terminal.Command, loaddata.Command):
    """Load fixtures."""

    def add_arguments(self, parser: base.CommandParser) -> None:
        """Add --overwrite."""
        super().add_arguments(parser)
        parser.add_argument(
            "--overwrite", action="store_true", help="load the demo even if something is configured"
        )

    def handle(self, *fixture_labels: Any, **options: Any) -> None:
        """Load the fixtures; refuse the demo if anything is configured."""
        is_demo = any(Path(label).name.partition(".")[0] == FIXTURE for label in fixture_labels)
        if is_demo and not options.get("overwrite") and installation.is_configured():
            raise CommandError(
                "This database already has a configuration, and the demo would replace what has the same names:"
                " plugins, tools, toolkits and agents. To look around, set DATABASE_URL to an empty database and run"
                f" `{conf.COMMAND} demo`. To replace it here, add --overwrite."
            )
        super().handle(*fixture_labels, **options)
