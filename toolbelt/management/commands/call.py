"""``manage.py call AGENT TOOL JSON``: call a tool as an agent."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf, processes
from toolbelt.core import admitting as gate
from toolbelt.core import errors
from toolbelt.management import terminal
from toolbelt.runtime import calls

# Codes whose message does not tell the model which rule decided; operators may find out.
UNEXPLAINED = ("unknown-tool", "tool-not-active", "tool-denied", "tool-unavailable")


class Command(terminal.Command):
    """Call a tool as an agent."""

    help = (
        "Call a tool as an agent, with the same checks, and print the result as JSON. The call is recorded."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the tool, its arguments, and the options of the request."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument("tool", metavar="TOOL", help="the tool's key")
        parser.add_argument(
            "arguments",
            metavar="JSON",
            nargs="?",
            default="{}",
            help="the arguments, a JSON object; - reads them from standard input",
        )
        parser.add_argument("--session", metavar="S", help="the session's id")
        parser.add_argument("--request-id", metavar="R", help="the id of a request in the session")
        parser.add_argument("--subagent", metavar="KIND", help="the kind of subagent")

    def handle(self, *args: Any, **options: Any) -> None:
        """Call the tool, and exit with 1 if the call is refused or fails."""
        text = sys.stdin.read() if options["arguments"] == "-" else options["arguments"]
        try:
            arguments = json.loads(text)
        except ValueError as error:
            raise CommandError(f"The arguments are not JSON: {error}") from error
        try:
            with processes.command():
                answer = calls.run(
                    options["agent"],
                    options["tool"],
                    arguments,
                    session=options["session"],
                    request_id=options["request_id"],
                    subagent=options["subagent"],
                )
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write_json(json.dumps(answer.document(), indent=2, sort_keys=True, ensure_ascii=False))
        if isinstance(answer, gate.Refusal):
            if answer.code in UNEXPLAINED:
                why = [options["agent"], options["tool"]]
                for name in ("session", "request_id", "subagent"):
                    why += [f"--{name.replace('_', '-')}", options[name]] if options[name] else []
                self.stderr.write(f"To see which rule decided: {conf.COMMAND} why {shlex.join(why)}")
            sys.exit(1)
