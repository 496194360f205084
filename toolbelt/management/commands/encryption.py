"""``manage.py encryption new-key | rotate``: the keys that encrypt the tokens of sign-ins at servers."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.people import second_factors
from toolbelt.control.servers import sign_ins
from toolbelt.core import errors, texts
from toolbelt.management import terminal


class Command(terminal.Command):
    """Print a new key, or encrypt the stored tokens with the first one."""

    help = "The keys that encrypt the tokens of sign-ins at upstream servers (TOOLBELT_ENCRYPTION_KEYS)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        commands.add_parser("new-key", help="print a new key")
        commands.add_parser("rotate", help="encrypt all tokens with the first key")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Run the subcommand."""
        if act == "new-key":
            self.stdout.write(sign_ins.new_key())
            return
        try:
            done, unreadable = sign_ins.encrypt_again()
            secrets, lost = second_factors.encrypt_again()
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Encrypted {texts.counted(done, 'sign-in')} and {texts.counted(secrets, 'secret')} of second factors"
            " with the first key."
        )
        if unreadable or lost:
            raise CommandError(
                f"No key decrypts {texts.counted(unreadable, 'sign-in')} and {texts.counted(lost, 'secret')} of second"
                " factors: add the key that encrypted them, or sign in and set the factors up again."
            )
