"""The commands ``block`` and ``unblock``."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.catalog import blocking
from toolbelt.core import errors, grants, texts
from toolbelt.management import durations, terminal


class Command(terminal.Command):
    """Block for everyone what TARGET names, or unblock it (``on``)."""

    on: bool

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the target, and how it is done."""
        parser.add_argument(
            "target",
            metavar="TARGET",
            help="a tool, a toolkit or a plugin; plugin:NAME, toolkit:KEY or tool:KEY if several have the name",
        )
        if self.on:
            durations.add_end(parser)
        parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        parser.add_argument("--dry-run", action="store_true", help="only print who would be affected")

    def handle(self, *args: Any, target: str, dry_run: bool, **options: Any) -> None:
        """Make the change, and print whom it affects."""
        write = writing.by(getpass.getuser(), via="command", reason=options["reason"])
        try:
            kind, name = blocking.find(target)

            def act(write: writing.Write) -> blocking.BlockChange:
                return blocking.set_blocked(write, kind, name, self.on, ends=options.get("ends"))

            if dry_run:
                with writing.dry_run():
                    change = act(write)
            else:
                change = act(write)
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        until = grants.until(grants.parse_time((change.result or {}).get("block_ends")))
        state = f"blocked for everyone {until}".rstrip() if self.on else "not blocked"
        if not change.before and not change.after:
            self.stdout.write(f"No changes: {kind} {name} is already {state}.")
            return
        self.stdout.write(f"{kind.capitalize()} {name} {'would be' if dry_run else 'is'} {state}.")
        for line in self._reach(change):
            self.stdout.write(line)
        self.stdout.write("Nothing was changed." if dry_run else f"Change {change.entry}.")

    def _reach(self, change: blocking.BlockChange) -> list[str]:
        """Return who loses or gets back what, a line each; for another end, the one before."""
        if not change.is_moved:
            until = grants.until(grants.parse_time(change.before.get("block_ends")))
            return [f"Before, it was blocked {until}."]
        verb, again = ("lose", "loses") if self.on else ("get back", "gets back")
        lines = [f"{agent} {again} {texts.counted(count, 'tool')}." for agent, count in change.agents.items()]
        if change.on_request:
            agents = texts.listing(change.on_request)
            lines.append(f"On request, {agents} {again if len(change.on_request) == 1 else verb} it.")
        if not lines:
            return ["No agent is affected."]
        sentence = change.conversations.sentence
        return [*lines, f"{sentence[:1].upper()}{sentence[1:]}."]
