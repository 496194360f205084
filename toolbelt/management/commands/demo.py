"""``manage.py demo``: set up the demo, with a month of generated activity and an operator's login.

The first run loads the demo, and creates the repository that real tools work on, and the operator if there is no user
yet. Later runs change nothing, and print the address and the login. A database whose configuration is not the demo's is
refused, unless it has a user of the operator's name: it may then be a demo that was changed.
"""

import argparse
import os
import secrets
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.management import demo_repository, terminal
from toolbelt.runtime import demo_plugins, plugins

FIXTURE = "demo"
OPERATOR = "operator"


class Command(terminal.Command):
    help = "Load the demo into an empty database, with an operator's login; print the address and the login."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--address", default="http://127.0.0.1:8000/", help="where the demo is served")
        parser.add_argument(
            "--password",
            default=os.environ.get("DEMO_PASSWORD", ""),
            help="the operator's password (default: DEMO_PASSWORD, or a random password)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        password = options["password"] or secrets.token_urlsafe(9)
        users = get_user_model().objects
        is_new = not installation.is_configured()
        if not is_new:
            if not users.filter(username=OPERATOR).exists():
                raise CommandError(
                    "This database is not empty, and the demo would replace a part of it: set DATABASE_URL to an empty"
                    " database, or run `make demo`, which creates its own."
                )
            self.stdout.write("Nothing was loaded: this database has a configuration already, and keeps it.")
            demo_repository.ensure(self.stderr)
        else:
            self.stdout.write("Loading the demo ...")
            # All or nothing, so that an interrupted run does not leave half a demo behind.
            with transaction.atomic():
                call_command("loaddata", FIXTURE, verbosity=0, stderr=self.stderr)
                if not users.exists():
                    users.create_superuser(OPERATOR, password=password)
        if is_new:
            self.stdout.write("Generating a month of activity ...")
            try:
                call_command("demo_activity", stdout=self.stdout)
            except CommandError as error:
                # The audit log of an earlier configuration stays as it is.
                self.stderr.write(str(error))
        operator = users.filter(username=OPERATOR).first()
        is_valid = operator is not None and operator.check_password(password)
        self.stdout.write(f"\n  Toolbelt   {options['address']}")
        self.stdout.write(
            f"  Login      {OPERATOR}, password {password}"
            if is_valid
            else "  Login      the one that this database had"
        )
        self.stdout.write(f"  Commands   {conf.COMMAND} help")
        if plugins.file() is None:
            self.stdout.write(
                f"  Tools      do not run: set TOOLBELT_PLUGINS_FILE={_shown(demo_plugins.FILE)}, and DEMO_REPOSITORY"
                " to the absolute path of a new directory"
            )


def _shown(file: Path) -> str:
    """Return a file's path from the current directory if it is below it, as it can be set there."""
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
