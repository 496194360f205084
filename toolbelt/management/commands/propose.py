"""``manage.py propose``: the smallest belt that refuses none of the recorded calls."""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import least_privilege, writing
from toolbelt.control.config import belt_texts
from toolbelt.core import errors, texts
from toolbelt.core import least_privilege as least
from toolbelt.management import columns, terminal

# How many names of a line are printed without --json.
MAX_NAMES = 12


class Command(terminal.Command):
    """Propose a smaller belt."""

    help = (
        "Print the least that agents need: the smallest belt that refuses none of their recorded calls, with its proof."
        " Nothing is written: apply the belt with `belt apply`."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agents, the period, what stays and the form."""
        parser.add_argument("agents", metavar="AGENT", nargs="*", help="for these agents")
        parser.add_argument("--all", action="store_true", help="for all agents that are not archived")
        parser.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=least_privilege.DAYS,
            help=f"by the calls of the last N days (default: {least_privilege.DAYS})",
        )
        parser.add_argument(
            "--keep",
            metavar="PATTERN",
            action="append",
            default=[],
            help="keep this tool, toolkit or plugin; * stands for the rest of a name. Can be repeated",
        )
        parser.add_argument(
            "--turn-off",
            action="store_true",
            help="also turn off unused tools of toolkits, plugins and categories that are used, by overrides",
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--belt", action="store_true", help="print only the belt, as YAML")
        form.add_argument("--json", action="store_true", help="print everything as JSON")

    def handle(self, *args: Any, agents: list[str], **options: Any) -> None:
        """Print the proposal."""
        if bool(agents) is options["all"]:
            raise CommandError("Name agents, or give --all.")
        try:
            proposal = least_privilege.propose(
                writing.by(getpass.getuser(), via="import"),
                agents,
                days=options["days"],
                keep=options["keep"],
                turn_off=options["turn_off"],
            )
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            document = least_privilege.document(proposal)
            self.stdout.write_json(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        elif options["belt"]:
            self.stdout.write_yaml(belt_texts.write(proposal.belt, "yaml"))
        else:
            self.stdout.write("\n".join(_lines(proposal)))


def _lines(proposal: least_privilege.Proposal) -> Iterator[str]:
    yield proposal.sentence
    if proposal.proof is not None:
        yield proposal.proof.sentence
        yield proposal.proof.coverage_sentence
    for one in proposal.agents:
        yield ""
        yield from _of_agent(one)
    if any("together" in one.smaller.unused.values() for one in proposal.agents if one.smaller):
        yield ""
        yield "To turn off unused tools of what is used as well, add --turn-off: overrides then deny them."


def _of_agent(one: least_privilege.OfAgent) -> Iterator[str]:
    smaller = one.smaller
    if smaller is None:
        yield f"{one.agent}: left as it is: {least_privilege.EXCEPTIONS[one.exception or 'few-calls']}."
        return
    if one.is_nothing:
        yield f"{one.agent}: nothing can be cleared ({texts.counted(one.calls, 'call')})."
    else:
        yield (
            f"{one.agent}: {smaller.before.tools:,} → {smaller.after.tools:,} tools,"
            f" {smaller.before.tokens:,} → {smaller.after.tokens:,} tokens per request"
            f" ({texts.counted(one.calls, 'call')})."
        )
        yield from columns.lines(
            (f"  {least_privilege.STEPS[step.kind]}:", texts.listing(step.names, MAX_NAMES) or "nothing")
            for step in smaller.steps
        )
    by_why: dict[least.Why, list[str]] = {}
    for tool, why in smaller.unused.items():
        by_why.setdefault(why, []).append(tool)
    for why, tools in by_why.items():
        yield f"  Not called, but stays, because {least.WHYS[why]}: {texts.listing(tools, MAX_NAMES)}"
