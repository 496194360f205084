"""``manage.py migrate``: Django's command, which waits while another process migrates the same database."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS

from toolbelt.control.config import installation
from toolbelt.management import terminal


class Command(terminal.Command, migrate.Command):
    """Migrate the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, one process at a time: several may be started at once, as with the replicas of a container."""
        if options["database"] != DEFAULT_DB_ALIAS or options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return
        with installation.migrating(
            lambda: self.stdout.write("Waiting for another process that migrates ...")
        ):
            super().handle(*args, **options)
