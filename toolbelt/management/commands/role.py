"""What may somebody do? (``manage.py role give | take | operate | list``)"""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.contrib import auth
from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import actors, roles
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Give and take roles, and name the operators of single agents."""

    help = "Give somebody a role or take it, name the operators of one agent, or list who may what."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take one of the acts, and what it is about."""
        acts = parser.add_subparsers(dest="act", required=True)
        for act, said in (("give", "give somebody a role"), ("take", "take a role from somebody")):
            one = acts.add_parser(act, help=said)
            one.add_argument("user", metavar="USER", help="their user name")
            one.add_argument("role", choices=roles.ROLES, help="the role")
            one.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")
        operate = acts.add_parser(
            "operate", help="say who may flip one agent's switches, beside all operators"
        )
        operate.add_argument("agent", metavar="AGENT", help="the agent's key")
        operate.add_argument("users", metavar="USER", nargs="*", help="all of them by name; none: nobody")
        operate.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")
        acts.add_parser("list", help="list everybody with their roles")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Do it."""
        actor = actors.Actor(name=getpass.getuser(), via="command")
        try:
            match act:
                case "give" | "take":
                    self._put(actor, act, options)
                case "operate":
                    agent, users = options["agent"], options["users"]
                    roles.name_operators(actor, agent, users, reason=options["reason"])
                    who = ", ".join(roles.operators_of(agent)) or "nobody"
                    self.stdout.write(f"{agent} has for operators of its own: {who}.")
                case _:
                    self.stdout.write("\n".join(_lines()))
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error

    def _put(self, actor: actors.Actor, act: str, options: dict[str, Any]) -> None:
        user, role = options["user"], options["role"]
        write = roles.give if act == "give" else roles.take
        is_new = write(actor, user, role, reason=options["reason"])
        now = f"is {role}" if act == "give" else f"is not {role}"
        self.stdout.write(f"{user} {now}{' now' if is_new else ' already'}.")


def _lines() -> list[str]:
    users = auth.get_user_model()._default_manager.order_by(auth.get_user_model().USERNAME_FIELD)
    lines = []
    for user in users:
        name = user.get_username()
        held = ["superuser"] if user.is_superuser else []
        held += [*roles.of_user(name)] + [f"operator of {agent}" for agent in roles.agents_of(user.pk)]
        lines.append(f"{name:<24}  {', '.join(held) or 'no role'}{'' if user.is_active else ' (inactive)'}")
    return lines or [f"There is nobody: {conf.COMMAND} createsuperuser makes the first one."]
