"""``manage.py agent create | copy | archive | restore``: create, copy and archive agents."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.agents import agents
from toolbelt.core import errors
from toolbelt.management import terminal
from toolbelt.runtime import surfaces


class Command(terminal.Command):
    """Create, copy, archive and restore agents."""

    help = "Create an agent, copy one, archive one, or restore an archived one."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        create = commands.add_parser("create", help="create an agent")
        create.add_argument("agent", metavar="AGENT", help="its key, in addresses and commands")
        create.add_argument(
            "--loadout", metavar="NAME", default="", help="the loadout that it is equipped with"
        )
        copy = commands.add_parser(
            "copy", help="create an agent with the configuration of another, without its tokens and history"
        )
        copy.add_argument("agent", metavar="AGENT", help="the agent that is copied")
        copy.add_argument("new", metavar="NEW", help="the key of the copy")
        for command in (create, copy):
            command.add_argument("--title", metavar="TEXT", default="", help="the name that people read")
        archive = commands.add_parser(
            "archive", help="archive an agent: its requests are rejected, and everything it has is kept"
        )
        archive.add_argument(
            "--confirm", action="store_true", help="archive it; without, the effect is printed"
        )
        restore = commands.add_parser("restore", help="restore an archived agent")
        for command in (archive, restore):
            command.add_argument("agent", metavar="AGENT", help="the agent's key")
        for command in (create, copy, archive, restore):
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str, agent: str, **options: Any) -> None:
        """Run the subcommand."""
        write = writing.by(getpass.getuser(), via="command", reason=options["reason"])
        try:
            match act:
                case "create":
                    agents.create(write, agent, title=options["title"], loadout=options["loadout"])
                    self._print_created(agent, "Created")
                case "copy":
                    agents.duplicate(write, agent, options["new"], title=options["title"])
                    self._print_created(options["new"], f"Copied {agent} to")
                case _:
                    self._set_archived(write.replace(confirm=options.get("confirm", True)), agent, act)
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To archive it, add --confirm.") from error
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error

    def _print_created(self, key: str, verb: str) -> None:
        spent = surfaces.ask(key).spent
        self.stdout.write(f"{verb} {key}. Tools: {spent.tools}. Tokens: {spent.tokens:,}.")
        self.stdout.write(f"Connect a client: {conf.COMMAND} connect {key} --client CLIENT")

    def _set_archived(self, write: writing.Write, agent: str, act: str) -> None:
        archived = act == "archive"
        change = agents.archive(write, agent, archived)
        state = "archived" if archived else "not archived"
        if change.is_nothing:
            self.stdout.write(f"No changes: {agent} is already {state}.")
        elif archived:
            self.stdout.write(
                f"{agent} is archived: its requests are rejected. To restore it: {conf.COMMAND} agent restore {agent}"
            )
        else:
            self.stdout.write(f"{agent} is restored, with everything it had.")
