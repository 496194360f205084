"""``manage.py why AGENT TOOL``: explain why an agent has a tool, and what gate rules say to a call of it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.core import admitting, errors, gate_rules, request_key, strict_json
from toolbelt.management import terminal
from toolbelt.runtime.surfaces import explain


class Command(terminal.Command):
    """Explain the decision for a tool of an agent."""

    help = (
        "Explain why an agent has a tool, or why it does not. With --trace, print the result of every rule; with"
        " --arguments, what gate rules say to a call with these arguments."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the tool, and the options of the request."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument("tool", metavar="TOOL", help="the tool's key")
        parser.add_argument("--session", metavar="S", help="the session's id")
        parser.add_argument("--request-id", metavar="R", help="the id of a request in the session")
        parser.add_argument("--subagent", metavar="KIND", help="the kind of subagent")
        parser.add_argument("--trace", action="store_true", help="print the result of every rule")
        parser.add_argument(
            "--arguments", metavar="JSON", help="the arguments of a call, as a JSON object, or - to read them"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the explanation."""
        try:
            key = request_key.RequestKey(
                options["agent"], options["session"], options["request_id"], options["subagent"]
            )
            given = options["arguments"]
            explanation = explain.why(key, options["tool"], None if given is None else _read(given))
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(explanation.line)
        if explanation.rollout:
            self.stdout.write(f"This session has the draft {explanation.rollout!r}, which is rolled out.")
        if explanation.runner == "client" and explanation.decision.state in ("active", "discoverable"):
            self.stdout.write("The agent's own program runs it: MCP clients do not see it.")
        if options["trace"]:
            for step in explanation.trace:
                mark = ">" if step.rule_number == explanation.decision.rule_number else " "
                self.stdout.write(f"{mark} {step.rule_number:>2}. {step.rule}  {_answer(step.answer)}")
        if options["arguments"] is not None or (options["trace"] and explanation.at_the_gate):
            self._at_the_gate(explanation)

    def _at_the_gate(self, explanation: explain.Explanation) -> None:
        if explanation.problems:
            self.stdout.write("The arguments do not fit the tool:")
            for violation in explanation.problems[: admitting.MAX_NAMED]:
                self.stdout.write(f"  {violation.path or 'arguments'}: {violation.message}")
        if not explanation.at_the_gate:
            self.stdout.write("At the gate: no rule concerns calls of this tool.")
            return
        self.stdout.write("At the gate:")
        for gate_step in explanation.at_the_gate:
            rule = gate_step.rule
            self.stdout.write(f"  {rule.key}: {gate_rules.in_words(rule)}  {gate_step.words}")


def _read(text: str) -> dict[str, Any]:
    """Return the arguments in a text, or in the standard input for ``-``."""
    try:
        arguments = strict_json.read_text(sys.stdin.read() if text == "-" else text, conf.API_BODY_DEPTH)
    except strict_json.UnreadableError as error:
        raise CommandError(f"The arguments cannot be read: {error}") from error
    if not isinstance(arguments, dict):
        raise CommandError('The arguments are a JSON object: write \'{"name": "value"}\'.')
    return arguments


def _answer(answer: Any) -> str:
    if answer is None:
        return "no"
    origin = " ".join(part for part in answer.origin if part)
    return f"yes: {answer.state}, {answer.code} ({origin})"
