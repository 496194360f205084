"""Why does this agent have this tool, or why not? (``manage.py why AGENT TOOL``)"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.core import errors
from toolbelt.management import terminal
from toolbelt.runtime import explain


class Command(terminal.Command):
    """Print the decision for one tool of one agent."""

    help = "Print why an agent has a tool, or why not: one line, or with --trace every question."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the agent and the tool, and what else a question may say."""
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("tool", metavar="TOOL")
        parser.add_argument("--session", metavar="S", help="ask within this session")
        parser.add_argument("--request-id", metavar="R", help="ask within this request of the session")
        parser.add_argument("--subagent", metavar="KIND", help="ask on behalf of a subagent of this kind")
        parser.add_argument("--trace", action="store_true", help="print the answer to every question")

    def handle(self, *args: Any, **options: Any) -> None:
        """Explain once, print it."""
        try:
            told = explain.why(
                options["agent"],
                options["tool"],
                session=options["session"],
                request_id=options["request_id"],
                subagent=options["subagent"],
            )
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(told.line)
        if options["trace"]:
            for step in told.trace:
                mark = ">" if step.question == told.decision.question else " "
                self.stdout.write(f"{mark} {step.question:>2}. {step.asks}  {_answer(step.answer)}")


def _answer(answer: Any) -> str:
    if answer is None:
        return "no"
    origin = " ".join(part for part in answer.origin if part)
    return f"yes: {answer.state}, {answer.code} ({origin})"
