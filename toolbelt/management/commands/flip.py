"""``manage.py flip AGENT KEY on|off|default``: flip a switch or override a tool."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import dry_runs, writing
from toolbelt.control.access import switches
from toolbelt.control.reports import queries
from toolbelt.control.servers import approvals
from toolbelt.core import effects, errors, grants
from toolbelt.management import durations, terminal

# "unset" is what belts and the API call the default.
_ON = {"on": True, "off": False, "default": None, "unset": None}


class Command(terminal.Command):
    """Flip a switch or override a tool."""

    help = (
        "Turn a toolkit or a tool on or off for an agent, permanently or for a limited time, or reset it to its"
        " default."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the toolkit or tool, its value, and the expiry."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument("key", metavar="KEY", help="the key of a toolkit or a tool")
        parser.add_argument(
            "on", metavar="STATE", choices=_ON, help="on, off or default, which removes the stored value"
        )
        until = parser.add_mutually_exclusive_group()
        until.add_argument(
            "--for",
            dest="ends",
            metavar="SPAN",
            type=durations.from_now,
            help="how long it applies, such as 90m, 2h or 3d",
        )
        until.add_argument(
            "--until",
            dest="ends",
            metavar="TIME",
            type=durations.timestamp,
            help="when it ends, with a time zone, such as 2026-11-22T14:05:00Z",
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        parser.add_argument(
            "--confirm", action="store_true", help="apply the change even if it is far-reaching"
        )

        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print the effect of the change, and what it would ask you to confirm",
        )

    def handle(self, *args: Any, agent: str, key: str, on: str, **options: Any) -> None:
        """Make the change, and print its effect."""
        write = writing.by(getpass.getuser(), via="command", reason=options["reason"])
        flip = switches.flip if queries.is_toolkit(key) else switches.override

        def act(write: writing.Write) -> writing.Change:
            return flip(write, agent, key, _ON[on], ends=options["ends"])

        reasons: Sequence[str] = ()
        try:
            if options["dry_run"]:
                result = dry_runs.run(write, act, agent=agent)
                change, reasons = result.change, result.reasons
            else:
                change = act(write.replace(confirm=options["confirm"]))
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To apply the change anyway, add --confirm.") from error
        except errors.NotFound as missing:
            if missing.what == "tool":  # possibly a mistyped toolkit
                names = [*missing.nearest, *queries.toolkit_keys()]
                missing = errors.NotFound("tool or toolkit", key, names)
            raise CommandError(str(missing)) from missing
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        end = grants.expiry_of(change.after)
        state = f"{on} for {agent}{f' until {grants.format_time(end.at)}' if end else ''}"
        if change.effect is None:
            self.stdout.write(f"No changes: {key} is already {state}.")
            return
        effect = change.effect
        if options["dry_run"]:
            self._print_effect(key, state, effect, reasons)
            if _ON[on]:
                self._print_review(key)
            self.stdout.write("Nothing was changed.")
            return
        self.stdout.write(
            f"{key} is {state}. Tools: {effect.tools_before} → {effect.tools_after}."
            f" Tokens: {effect.tokens_before} → {effect.tokens_after}. Change {change.entry}."
        )
        if _ON[on]:
            self._print_review(key)

    def _print_review(self, key: str) -> None:
        """Print a note if the tool awaits review: no agent has it before."""
        if approvals.is_held(key):
            self.stdout.write(
                "It awaits review; no agent has it yet. Review it in the dashboard, under Review."
            )

    def _print_effect(self, key: str, state: str, effect: effects.Effect, reasons: Sequence[str]) -> None:
        self.stdout.write(
            f"{key} would be {state}. Tools: {effect.tools_before} → {effect.tools_after}."
            f" Tokens: {effect.tokens_before} → {effect.tokens_after}."
        )
        for title, names in (
            ("Adds", effect.added),
            ("Removes", effect.removed),
            ("Now on request", effect.on_request_added),
            ("No longer on request", effect.on_request_removed),
        ):
            if names:
                self.stdout.write(f"{title}: {', '.join(names)}.")
        for toolkit, before, after in effect.policy:
            self.stdout.write(f"Policy of {toolkit}: {before} → {after}.")
        if effect.breaks:
            self.stdout.write(
                f"Resets prompt caches: {', '.join(effect.breaks)}. Live sessions affected: {effect.sessions}."
            )
        for reason in reasons:
            self.stdout.write(f"To confirm: {reason}")
