"""``manage.py loaddata``: Django's command, which knows where the demo may be loaded, and says how to serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import base
from django.core.management.base import CommandError
from django.core.management.commands import loaddata

from toolbelt import conf, locations
from toolbelt.control.config import installation
from toolbelt.management import demo_repository, terminal

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
        """Load the fixtures; refuse the demo in production, and if anything is configured."""
        is_demo = any(Path(label).name.partition(".")[0] == FIXTURE for label in fixture_labels)
        if is_demo:
            _check(may_overwrite=options.get("overwrite", False))
        super().handle(*fixture_labels, **options)
        if is_demo:
            demo_repository.ensure(self.stderr)
            if options["verbosity"]:
                self.stdout.write(_next_step())


def _check(*, may_overwrite: bool) -> None:
    """Raise CommandError if the demo may not be loaded."""
    if settings.ENVIRONMENT == "production":
        raise CommandError(
            "This is a production installation, and the demo's tools do not run in one, because their results are"
            f" simulated. To look around, run `{'make demo' if locations.IS_CHECKOUT else f'{conf.COMMAND} demo'}`,"
            " which serves the demo with a database of its own."
        )
    if not may_overwrite and installation.is_configured():
        raise CommandError(
            "This database already has a configuration, and the demo would replace what has the same names:"
            " plugins, tools, toolkits and agents. To look around, set DATABASE_URL to an empty database and run"
            f" `{conf.COMMAND} demo`. To replace it here, add --overwrite."
        )


def _next_step() -> str:
    login = (
        ""
        if get_user_model().objects.exists()
        else f"create a login with `{conf.COMMAND} user create NAME --role administrator`, and "
    )
    serve = f"serve it with `{conf.COMMAND} serve`; restart a server that runs already"
    return f"To use the demo, {login}{serve}. The server runs the demo's tools."
