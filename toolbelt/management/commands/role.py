"""``manage.py role give | take | operate | list``: manage users' roles and agents' operators."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.contrib import auth
from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.people import roles
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Grant and revoke roles, and set the operators of agents."""

    help = "Give a user a role or take it away, set the operators of an agent, or list all users with their roles."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        for name, description in (
            ("give", "give a user a role"),
            ("take", "take a role away from a user"),
        ):
            command = commands.add_parser(name, help=description)
            command.add_argument("user", metavar="USER", help="the user's name")
            command.add_argument(
                "role", metavar="ROLE", choices=roles.ROLES, help=f"the role: {', '.join(roles.ROLES)}"
            )
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        operate = commands.add_parser(
            "operate",
            help="set or print the users who may flip one agent's switches, in addition to all operators",
        )
        operate.add_argument("agent", metavar="AGENT", help="the agent's key")
        operate.add_argument(
            "users",
            metavar="USER",
            nargs="*",
            help="the users' names; without any, the operators are printed",
        )
        operate.add_argument("--none", action="store_true", help="remove all operators of the agent")
        operate.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        commands.add_parser("list", help="list all users with their roles")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Run the subcommand."""
        write = writing.by(getpass.getuser(), via="command", reason=options.get("reason", ""))
        try:
            match act:
                case "give" | "take":
                    self._put(write, act, options)
                case "operate":
                    agent, users, none = options["agent"], options["users"], options["none"]
                    if users and none:
                        raise CommandError(
                            f"--none removes all operators: leave out {', '.join(users)}, or --none."
                        )
                    if users or none:
                        roles.set_operators(write, agent, users)
                    who = ", ".join(roles.operators_of(agent)) or "none"
                    self.stdout.write(f"Operators of {agent}: {who}.")
                case _:
                    self.stdout.write("\n".join(_lines()))
        except errors.ToolbeltError as error:
            raise CommandError(terminal.explained(error)) from error

    def _put(self, write: writing.Write, act: str, options: dict[str, Any]) -> None:
        user, role = options["user"], options["role"]
        change = roles.assign if act == "give" else roles.remove
        has_changed = change(write, user, role)
        if act == "give":
            message = f"{user} is now {role}." if has_changed else f"No changes: {user} is already {role}."
        else:
            message = f"{user} is no longer {role}." if has_changed else f"No changes: {user} is not {role}."
        self.stdout.write(message)


def _lines() -> list[str]:
    users = auth.get_user_model()._default_manager.order_by(auth.get_user_model().USERNAME_FIELD)
    lines = []
    for user in users:
        name = user.get_username()
        held_roles = ["superuser"] if user.is_superuser else []
        held_roles += [*roles.of_user(name)] + [f"operator of {agent}" for agent in roles.agents_of(user.pk)]
        inactive = "" if user.is_active else " (inactive)"
        lines.append(f"{name:<24}  {', '.join(held_roles) or 'no role'}{inactive}")
    way_out = f"Create the first with `{conf.COMMAND} user create NAME --role administrator`."
    return lines or [f"There are no users. {way_out}"]
