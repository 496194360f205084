"""``manage.py user create | password | reset-second-factor``: create users, and let them in again."""

from __future__ import annotations

import argparse
import getpass
import secrets
import sys
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.people import roles, second_factors, users
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Create users, give them new passwords, and reset the second factor of those who have lost it."""

    help = (
        "Create a user, or give one a new password: it is asked for, or read as a line from standard input. Or"
        " remove the second factor of one who has lost it."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        create = commands.add_parser("create", help="create a user who can log in")
        create.add_argument(
            "--role",
            dest="roles",
            action="append",
            choices=[*roles.ROLES, "none"],
            help="the user's role: viewer (the default), operator or administrator; may be repeated",
        )
        password = commands.add_parser(
            "password", help="give a user a new password, which logs them out everywhere"
        )
        factor = commands.add_parser(
            "reset-second-factor",
            help="remove the apps, passkeys and recovery codes of a user, whose password alone logs in then",
        )
        for command in (create, password, factor):
            command.add_argument("user", metavar="USER", help="the user's name")
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        for command in (create, password):
            command.add_argument(
                "--generate", action="store_true", help="choose a random password, and print it alone"
            )

    def handle(self, *args: Any, act: str, user: str, generate: bool = False, **options: Any) -> None:
        """Run the subcommand."""
        write = writing.by(getpass.getuser(), via="command", reason=options["reason"])
        try:
            if act == "reset-second-factor":
                had_one = second_factors.reset(write, user)
                self.stderr.write(f"{user} has no second factor{' any more' if had_one else ''}.")
                return
            if act == "password":
                users.find(user)  # before a password is asked for
            password = secrets.token_urlsafe(12) if generate else _read_password(user)
            if act == "create":
                named = options["roles"] or ["viewer"]
                users.create(write, user, password, [role for role in named if role != "none"])
                has = ", ".join(roles.of_user(user)) or "no role"
                self.stderr.write(
                    f"Created {user}: {has}. To change that: {conf.COMMAND} role give {user} ROLE"
                )
            else:
                users.set_password(write, user, password)
                self.stderr.write(f"{user} has a new password, and is logged out everywhere.")
        except errors.ToolbeltError as error:
            raise CommandError(terminal.explained(error)) from error
        if generate:
            self.stdout.write(password)


def _read_password(user: str) -> str:
    """Return a password that a person types twice, or a program writes as a line; raise CommandError."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {user}: ")
    if getpass.getpass("Again: ") != password:
        raise CommandError("The passwords do not match. Nothing was changed.")
    return password
