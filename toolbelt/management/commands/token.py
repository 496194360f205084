"""``manage.py token issue | list | revoke``: manage API tokens."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.people import tokens
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Issue, list and revoke API tokens."""

    help = "Issue an API token (printed once, alone on standard output), list all tokens, or revoke a token."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        issue = commands.add_parser("issue", help="issue a token for an agent or an operator")
        whose = issue.add_mutually_exclusive_group(required=True)
        whose.add_argument("--agent", metavar="A", help="the agent that the token is for")
        whose.add_argument("--operator", metavar="USER", help="the operator that the token is for")
        issue.add_argument("--scope", choices=tokens.SCOPES, help="the scope of an operator's token")
        issue.add_argument("--name", metavar="N", default="", help="a name that says what the token is for")
        issue.add_argument("--days", metavar="D", type=int, help="expire in D days (default: never)")
        issue.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        commands.add_parser("list", help="list all tokens, newest first")
        revoke = commands.add_parser("revoke", help="revoke a token permanently")
        revoke.add_argument("prefix", metavar="PREFIX", help="the beginning of the token, as printed by list")
        revoke.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Run the subcommand."""
        write = writing.by(getpass.getuser(), via="command", reason=options.get("reason", ""))
        try:
            match act:
                case "issue":
                    self._issue(write, options)
                case "list":
                    self.stdout.write("\n".join(_lines(tokens.all_tokens(), timezone.now())))
                case _:
                    token = tokens.revoke(write, options["prefix"])
                    self.stdout.write(f"{token.prefix} is revoked. Requests with it will be rejected.")
        except errors.ToolbeltError as error:
            raise CommandError(terminal.explained(error)) from error

    def _issue(self, write: writing.Write, options: dict[str, Any]) -> None:
        issued = tokens.issue(
            write,
            name=options["name"],
            agent=options["agent"],
            user=options["operator"],
            scope=options["scope"] or "",
            expires=_end(options["days"]),
        )
        self.stderr.write(f"Token for {_whose(issued.token)}. Store it now: it is not shown again.")
        if options["agent"] and entries.read("agent", options["agent"]).get("archived"):
            self.stderr.write(f"Warning: {errors.Archived(options['agent'])}")
        self.stdout.write(issued.text)


def _end(days: int | None) -> dt.datetime | None:
    if days is None:
        return None
    try:
        return timezone.now() + dt.timedelta(days=days)
    except OverflowError as error:
        raise CommandError(f"--days {days} is too large.") from error


def _lines(listed: Sequence[tokens.Token], now: dt.datetime) -> list[str]:
    if not listed:
        return [f"There are no tokens. Issue one with {conf.COMMAND} token issue."]
    return [
        "  ".join(
            [
                token.prefix,
                f"{_state(token, now):<22}",
                _whose(token),
                _issued(token),
                _used(token),
                token.name,
            ]
        ).rstrip()
        for token in listed
    ]


def _whose(token: tokens.Token) -> str:
    return f"agent {token.agent}" if token.agent else f"operator {token.user} ({token.scope})"


def _state(token: tokens.Token, now: dt.datetime) -> str:
    rejection = token.rejection(now)
    if token.revoked is not None:
        return f"revoked {token.revoked:%Y-%m-%d}"
    if rejection == "expired":
        return f"expired {token.expires:%Y-%m-%d}"
    if rejection:
        return f"not valid: {'agent' if token.agent else 'user'} {rejection}"
    return f"valid until {token.expires:%Y-%m-%d}" if token.expires else "valid"


def _issued(token: tokens.Token) -> str:
    return f"issued by {token.issued_by or 'an unknown person'} {token.created:%Y-%m-%d}"


def _used(token: tokens.Token) -> str:
    return f"used {token.last_used:%Y-%m-%d}" if token.last_used else "not used yet"
