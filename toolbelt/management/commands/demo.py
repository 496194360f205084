"""What does someone need who has never seen Toolbelt? A filled installation and a login.

The first run loads the demo with a made-up month of use, and makes the operator; any later run changes nothing and
says where things are.
"""

import argparse
import os
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import transaction

from toolbelt import conf
from toolbelt.management import terminal

FIXTURE = "demo"
OPERATOR = "operator"


class Command(terminal.Command):
    help = "Load the demo and make an operator's login, once; say the address and the login, always."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--address", default="http://127.0.0.1:8000/", help="where the demo is served")
        parser.add_argument(
            "--password",
            default=os.environ.get("DEMO_PASSWORD", ""),
            help="of the operator's login; made up where neither this nor DEMO_PASSWORD is given",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        password = options["password"] or secrets.token_urlsafe(9)
        users = get_user_model().objects
        if not users.exists():
            self.stdout.write("Loading the demo ...")
            # All or nothing: a run that was broken off leaves no half of a demo behind.
            with transaction.atomic():
                call_command("loaddata", FIXTURE, verbosity=0)
                users.create_superuser(OPERATOR, password=password)
            self.stdout.write("Making up a month of use ...")
            call_command("demo_activity", stdout=self.stdout)
        operator = users.filter(username=OPERATOR).first()
        as_made = operator is not None and operator.check_password(password)
        self.stdout.write(f"\n  Toolbelt   {options['address']}")
        self.stdout.write(
            f"  Login      {OPERATOR}, password {password}" if as_made else "  Login      as you changed it"
        )
        self.stdout.write(f"  Commands   {conf.COMMAND} help")
