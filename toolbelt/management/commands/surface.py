"""``manage.py surface AGENT``: print an agent's surface."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import CommandError

from toolbelt.core import errors, surface, texts
from toolbelt.management import terminal
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import rendering


class Command(terminal.Command):
    """Print the surface of an agent."""

    help = "Print what the model currently receives for an agent: tools, policy text, directive."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, and the options of the request."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument("--session", metavar="S", help="the session's id")
        parser.add_argument("--request-id", metavar="R", help="the id of a request in the session")
        parser.add_argument("--message", metavar="TEXT", help="the user's message, for a directive")
        parser.add_argument("--subagent", metavar="KIND", help="the kind of subagent")
        parser.add_argument("--model", metavar="NAME", help="the model's name, instead of the agent's")
        parser.add_argument(
            "--format",
            choices=("text", "json", *rendering.FORMATS),
            default="text",
            help="text for people, json for the whole document, or the arguments for a provider's SDK",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the surface."""
        try:
            answer = surfaces.ask(
                options["agent"],
                session=options["session"],
                request_id=options["request_id"],
                message=options["message"],
                subagent=options["subagent"],
            )
            form = options["format"]
            text = "\n".join(_lines(answer)) if form == "text" else _document(answer, form, options["model"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        if form == "text":
            self.stdout.write(text)
        else:
            self.stdout.write_json(text)


def _document(answer: surface.Surface, form: str, model: str | None) -> str:
    document = answer.document() if form == "json" else rendering.render(answer, form, model=model)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def _lines(answer: surface.Surface) -> list[str]:
    spent, discoverable = answer.spent, answer.discoverable
    tools, tokens = texts.counted(spent.tools, "tool"), texts.counted(spent.tokens, "token")
    lines = [f"{answer.agent}: {tools}, {tokens} (revision {answer.revision})", ""]
    width = max((len(definition.name) for definition in answer.tools), default=0)
    for definition in answer.tools:
        code = answer.because[definition.name].code
        lines.append(f"  {definition.name:<{width}}  {definition.tokens:>6}  {code}")
    if answer.meta_tools:
        lines.append("  to load more: " + ", ".join(sorted(d.name for d in answer.meta_tools)))
    if discoverable.count:
        names = ", ".join((*discoverable.toolkits, *discoverable.plugins)) or "deferred by the budget"
        lines.append(f"  {discoverable.count} more on request: {names}")
    lines += [f"  warning: {warning.message}" for warning in answer.warnings]
    lines += ["", "Policy:", answer.policy.text or "(none)"]
    if answer.directive is not None:
        focus = ", ".join(answer.directive.active_tools)
        lines += [
            "",
            f"Directive for the first step: tool_choice {answer.directive.tool_choice}; focus on {focus}",
        ]
    return lines
