"""``manage.py flip AGENT KEY on|off|default``: flip a switch or override a tool."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from toolbelt.control import dry_runs, writing
from toolbelt.control.access import access_index, bulk, switches
from toolbelt.control.reports import queries
from toolbelt.control.servers import approvals
from toolbelt.core import effects, errors, grants, texts
from toolbelt.management import durations, terminal

# "unset" is what belts and the API call the default.
_ON = {"on": True, "off": False, "default": None, "unset": None}


class Command(terminal.Command):
    """Flip a switch or override a tool."""

    help = (
        "Turn a toolkit or a tool on or off for an agent, permanently or for a limited time, or reset it to its"
        " default."
    )

    def create_parser(self, *args: Any, **options: Any) -> CommandParser:
        """Return a parser that needs no AGENT with --all-agents."""
        parser = super().create_parser(*args, **options)
        parse = parser.parse_args

        def parse_args(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
            # An optional AGENT would be taken for KEY wherever an option comes first.
            words = [*(args or ())]
            return parse(["", *words] if "--all-agents" in words else words, namespace)

        parser.parse_args = parse_args  # type: ignore[method-assign,assignment]
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the toolkit or tool, its value, and the expiry."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key; left out with --all-agents")
        parser.add_argument(
            "--all-agents", action="store_true", help="for all agents except archived ones, all or none"
        )
        parser.add_argument("key", metavar="KEY", help="the key of a toolkit or a tool")
        parser.add_argument(
            "on", metavar="STATE", choices=_ON, help="on, off or default, which removes the stored value"
        )
        durations.add_end(parser)
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
        if options["all_agents"]:
            self._flip_all(write, key, on, options)
            return
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
            f" Tokens: {effect.tokens_before:,} → {effect.tokens_after:,}. Change {change.entry}."
        )
        if _ON[on]:
            self._print_review(key)

    def _flip_all(self, write: writing.Write, key: str, on: str, options: dict[str, Any]) -> None:
        """Make the change for all agents that are not archived, or for none of them."""
        names = [access.agent.key for access in access_index.load().agents]
        try:
            plan = bulk.plan(names, [key], _ON[on])
            if plan.parts and not options["dry_run"]:
                bulk.apply(
                    write.replace(confirm=options["confirm"]), _seen(plan), _ON[on], ends=options["ends"]
                )
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To apply the change anyway, add --confirm.") from error
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        for part in plan.parts:
            effect = part.effect
            self.stdout.write(
                f"{part.agent}: tools {effect.tools_before} → {effect.tools_after}, tokens {effect.tokens_before} →"
                f" {effect.tokens_after}"
            )
            if options["dry_run"]:
                for reason in (part.refused, *part.reasons):
                    if reason:
                        self.stdout.write(
                            f"  {'Refused' if reason == part.refused else 'To confirm'}: {reason}"
                        )
        until = f" until {grants.format_time(options['ends'])}" if options["ends"] and plan.parts else ""
        changed, same = texts.counted(len(plan.parts), "agent"), texts.counted(plan.unchanged, "agent")
        self.stdout.write(
            f"{key} {'would be' if options['dry_run'] else 'is'} {on}{until} for {changed}; {same} already had it."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")
        elif _ON[on]:
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
            f" Tokens: {effect.tokens_before:,} → {effect.tokens_after:,}."
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
            conversations = effect.conversations or effects.NO_CONVERSATIONS
            self.stdout.write(f"{conversations.sentence[:1].upper()}{conversations.sentence[1:]}.")
            if conversations.rewritten:
                self.stdout.write(f"Resets prompt caches: {', '.join(effect.breaks)}.")
        for reason in reasons:
            self.stdout.write(f"To confirm: {reason}")


def _seen(plan: bulk.Plan) -> bulk.Seen:
    """Return the state of everything that would change, also where it is refused: then nothing is changed."""
    return {part.agent: dict(part.before) for part in plan.parts}
