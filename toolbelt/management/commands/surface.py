"""What does the model get? (``manage.py surface AGENT``)"""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import CommandError

from toolbelt.core import errors, surface
from toolbelt.management import terminal
from toolbelt.runtime import rendering, surfaces


class Command(terminal.Command):
    """Print the surface of an agent."""

    help = "Print what the model gets for an agent now: tools, policy text, directive."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the agent, and what else a question may say."""
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--session", metavar="S", help="ask within this session")
        parser.add_argument("--request-id", metavar="R", help="ask within this request of the session")
        parser.add_argument("--message", metavar="TEXT", help="the user's message, for a directive")
        parser.add_argument("--subagent", metavar="KIND", help="ask on behalf of a subagent of this kind")
        parser.add_argument(
            "--format",
            choices=("text", "json", *rendering.FORMATS),
            default="text",
            help="for people, the whole document, or what a provider's SDK is passed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask once, print the answer."""
        try:
            answer = surfaces.ask(
                options["agent"],
                session=options["session"],
                request_id=options["request_id"],
                message=options["message"],
                subagent=options["subagent"],
            )
            form = options["format"]
            said = "\n".join(_lines(answer)) if form == "text" else _document(answer, form)
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        if form == "text":
            self.stdout.write(said)
        else:
            self.stdout.write_json(said)


def _document(answer: surface.Surface, form: str) -> str:
    document = answer.document() if form == "json" else rendering.render(answer, form)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def _lines(answer: surface.Surface) -> list[str]:
    spent, found = answer.spent, answer.discoverable
    lines = [f"{answer.agent}: {spent.tools} tools, {spent.tokens} tokens (revision {answer.revision})", ""]
    width = max((len(definition.name) for definition in answer.tools), default=0)
    for definition in answer.tools:
        code = answer.because[definition.name].code
        lines.append(f"  {definition.name:<{width}}  {definition.tokens:>6}  {code}")
    if answer.meta_tools:
        lines.append("  and, to load others: " + ", ".join(sorted(d.name for d in answer.meta_tools)))
    if found.count:
        named = ", ".join((*found.toolkits, *found.plugins)) or "deferred by the budget"
        lines.append(f"  {found.count} more can be had on request: {named}")
    lines += [f"  warning: {warning.message}" for warning in answer.warnings]
    lines += ["", "Policy:", answer.policy.text or "(none)"]
    if answer.directive is not None:
        focus = ", ".join(answer.directive.active_tools)
        lines += [
            "",
            f"Directive, for the first step: tool_choice {answer.directive.tool_choice}; focus on {focus}",
        ]
    return lines
