"""Who may come in over the network? (``manage.py token issue | list | revoke``)"""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from toolbelt import conf
from toolbelt.control import actors, tokens
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Issue, list and revoke tokens of the API."""

    help = "Issue a token (printed once, alone on standard output), list those there are, or revoke one."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take one of the acts, and what it is about."""
        acts = parser.add_subparsers(dest="act", required=True)
        issue = acts.add_parser("issue", help="issue a token of an agent or of an operator")
        whose = issue.add_mutually_exclusive_group(required=True)
        whose.add_argument("--agent", metavar="A", help="the agent that asks and calls with it")
        whose.add_argument("--operator", metavar="USER", help="the operator who acts with it")
        issue.add_argument("--scope", choices=tokens.SCOPES, help="what an operator may do with it")
        issue.add_argument("--name", metavar="N", default="", help="what it is for")
        issue.add_argument("--days", metavar="D", type=int, help="it ends in D days; else when it is revoked")
        issue.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")
        acts.add_parser("list", help="list all tokens, the newest first")
        revoke = acts.add_parser("revoke", help="let a token open nothing any more, for good")
        revoke.add_argument("prefix", metavar="PREFIX", help="how it begins, as list shows it")
        revoke.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Do it."""
        actor = actors.Actor(name=getpass.getuser(), via="command")
        try:
            match act:
                case "issue":
                    self._issue(actor, options)
                case "list":
                    self.stdout.write("\n".join(_lines(tokens.listed(), timezone.now())))
                case _:
                    gone = tokens.revoke(actor, options["prefix"], options["reason"])
                    self.stdout.write(f"{gone.prefix} opens nothing any more.")
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error

    def _issue(self, actor: actors.Actor, options: dict[str, Any]) -> None:
        issued = tokens.issue(
            actor,
            name=options["name"],
            agent=options["agent"],
            user=options["operator"],
            scope=options["scope"] or "",
            expires=_end(options["days"]),
            reason=options["reason"],
        )
        self.stderr.write(f"A token of {_whose(issued.token)}. It is shown this once:")
        self.stdout.write(issued.text)


def _end(days: int | None) -> dt.datetime | None:
    if days is None:
        return None
    try:
        return timezone.now() + dt.timedelta(days=days)
    except OverflowError as error:
        raise CommandError(f"--days {days} is longer than there are calendars.") from error


def _lines(known: Sequence[tokens.Token], now: dt.datetime) -> list[str]:
    if not known:
        return [f"There are no tokens: {conf.COMMAND} token issue makes one."]
    return [
        f"{one.prefix}  {_state(one, now):<18}  {_whose(one)}  {_used(one)}  {one.name}".rstrip()
        for one in known
    ]


def _whose(token: tokens.Token) -> str:
    return f"agent {token.agent}" if token.agent else f"operator {token.user} ({token.scope})"


def _state(token: tokens.Token, now: dt.datetime) -> str:
    if token.revoked is not None:
        return f"revoked {token.revoked:%Y-%m-%d}"
    if token.expires is None:
        return "valid"
    return f"{'valid until' if token.is_valid(now) else 'over since'} {token.expires:%Y-%m-%d}"


def _used(token: tokens.Token) -> str:
    return f"used {token.last_used:%Y-%m-%d}" if token.last_used else "not used yet"
