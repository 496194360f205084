"""What does this tool answer to this agent? (``manage.py call AGENT TOOL JSON``)"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.core import calls as gate
from toolbelt.core import errors
from toolbelt.management import terminal
from toolbelt.runtime import calls, plugins

# What a model is told in general words, an operator may know.
UNEXPLAINED = ("unknown-tool", "tool-not-active", "tool-denied", "tool-unavailable")


class Command(terminal.Command):
    """Make one call for an agent."""

    help = (
        "Call a tool as an agent does, through the same gate, and print the answer as JSON. It is recorded."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the agent, the tool, its arguments, and what else a call may say."""
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("tool", metavar="TOOL")
        parser.add_argument(
            "arguments",
            metavar="JSON",
            nargs="?",
            default="{}",
            help="an object; - reads it from the terminal",
        )
        parser.add_argument("--session", metavar="S", help="call within this session")
        parser.add_argument("--request-id", metavar="R", help="call within this request of the session")
        parser.add_argument("--subagent", metavar="KIND", help="call on behalf of a subagent of this kind")

    def handle(self, *args: Any, **options: Any) -> None:
        """Call once; exit with 1 if the answer is a refusal."""
        given = sys.stdin.read() if options["arguments"] == "-" else options["arguments"]
        try:
            arguments = json.loads(given)
        except ValueError as error:
            raise CommandError(f"The arguments are not JSON: {error}") from error
        try:
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
        finally:
            plugins.stop()
        self.stdout.write_json(json.dumps(answer.document(), indent=2, sort_keys=True, ensure_ascii=False))
        if isinstance(answer, gate.Refusal):
            if answer.code in UNEXPLAINED:
                asked = [options["agent"], options["tool"]]
                for name in ("session", "request_id", "subagent"):
                    asked += [f"--{name.replace('_', '-')}", options[name]] if options[name] else []
                self.stderr.write(f"Which rule decided: {conf.COMMAND} why {shlex.join(asked)}")
            sys.exit(1)
