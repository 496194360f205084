"""``manage.py why AGENT TOOL``: explain why an agent has a tool, or why it does not."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt.core import errors, request_key
from toolbelt.management import terminal
from toolbelt.runtime.surfaces import explain


class Command(terminal.Command):
    """Explain the decision for a tool of an agent."""

    help = (
        "Explain why an agent has a tool, or why it does not. With --trace, print the result of every rule."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the tool, and the options of the request."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument("tool", metavar="TOOL", help="the tool's key")
        parser.add_argument("--session", metavar="S", help="the session's id")
        parser.add_argument("--request-id", metavar="R", help="the id of a request in the session")
        parser.add_argument("--subagent", metavar="KIND", help="the kind of subagent")
        parser.add_argument("--trace", action="store_true", help="print the result of every rule")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the explanation."""
        try:
            key = request_key.RequestKey(
                options["agent"], options["session"], options["request_id"], options["subagent"]
            )
            explanation = explain.why(key, options["tool"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(explanation.line)
        if explanation.runner == "client" and explanation.decision.state in ("active", "discoverable"):
            self.stdout.write("The agent's own program runs it: MCP clients do not see it.")
        if options["trace"]:
            for step in explanation.trace:
                mark = ">" if step.rule_number == explanation.decision.rule_number else " "
                self.stdout.write(f"{mark} {step.rule_number:>2}. {step.rule}  {_answer(step.answer)}")


def _answer(answer: Any) -> str:
    if answer is None:
        return "no"
    origin = " ".join(part for part in answer.origin if part)
    return f"yes: {answer.state}, {answer.code} ({origin})"
