"""What shall this agent have? (``manage.py flip AGENT KEY on|off|unset``)"""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import actors, queries, switches
from toolbelt.core import errors, grants
from toolbelt.management import moments, terminal

_ON = {"on": True, "off": False, "unset": None}


class Command(terminal.Command):
    """Flip a switch or override a tool."""

    help = "Set an agent's switch of a toolkit, or its override of a tool: on, off or unset; for good, or for a while."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take what is wanted, and until when."""
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("key", metavar="KEY", help="the toolkit or the tool")
        parser.add_argument("on", choices=_ON)
        until = parser.add_mutually_exclusive_group()
        until.add_argument(
            "--for",
            dest="ends",
            metavar="SPAN",
            type=moments.span,
            help="it ends so long from now: 90m, 2h, 3d",
        )
        until.add_argument(
            "--until",
            dest="ends",
            metavar="MOMENT",
            type=moments.moment,
            help="it ends then: 2026-11-22T14:05:00Z",
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")
        parser.add_argument("--confirm", action="store_true", help="do it, though it is far-reaching")

    def handle(self, *args: Any, agent: str, key: str, on: str, **options: Any) -> None:
        """Do it, and say what it did."""
        actor = actors.Actor(name=getpass.getuser(), via="command")
        write = switches.flip if queries.is_toolkit(key) else switches.override
        try:
            change = write(
                actor,
                agent,
                key,
                _ON[on],
                ends=options["ends"],
                reason=options["reason"],
                confirm=options["confirm"],
            )
        except errors.ConfirmationRequired as asked:
            raise CommandError(f"{asked} Look at it, then say --confirm.") from asked
        except errors.NotFound as missing:
            if missing.what == "tool":  # as likely a toolkit, mistyped
                known = [*missing.nearest, *queries.toolkit_keys()]
                missing = errors.NotFound("tool or toolkit", key, known)
            raise CommandError(str(missing)) from missing
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        end = grants.end(change.after)
        said = f"{key} is {on} for {agent}{f' until {grants.written(end.at)}' if end else ''}"
        if change.is_nothing or change.effect is None:
            self.stdout.write(f"Nothing to change: {said} already.")
            return
        effect = change.effect
        self.stdout.write(
            f"{said}. Tools {effect.tools_before} to {effect.tools_after},"
            f" tokens {effect.tokens_before} to {effect.tokens_after}. Change {change.entry}."
        )
