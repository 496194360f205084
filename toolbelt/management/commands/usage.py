"""``manage.py usage``: print which tools are not used, and the tokens and calls of agents and tools."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.reports import tokens_used
from toolbelt.core import errors, grants, texts
from toolbelt.management import columns, terminal

# How many agents and tools are printed without --json or --csv.
MAX_PRINTED = 20
TABLES = ("agents", "tools", "unused")


class Command(terminal.Command):
    """Print what is used, and what it costs."""

    help = (
        "Print the tools that agents have and do not call, and the tokens and calls of agents and tools, the most"
        " expensive first."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the period, the agent and the form."""
        parser.add_argument("--agent", metavar="AGENT", default="", help="of this agent only")
        parser.add_argument(
            "--days", metavar="N", type=_days, default=30, help="in the last N days (default: 30)"
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print all agents and tools as JSON")
        form.add_argument("--csv", metavar="TABLE", choices=TABLES, help=f"print as CSV: {', '.join(TABLES)}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report."""
        try:
            report = tokens_used.report(days=options["days"], agent=options["agent"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            document = {
                "since": grants.format_time(report.since),
                **{table: [dataclasses.asdict(row) for row in getattr(report, table)] for table in TABLES},
            }
            self.stdout.write_json(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        elif options["csv"]:
            self.stdout.write(_csv(report, options["csv"]), ending="")
        else:
            self.stdout.write("\n".join(_text(report, options["days"])))


def _days(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= tokens_used.MAX_DAYS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of days: choose one from 1 to {tokens_used.MAX_DAYS}."
        )
    return int(text)


def _csv(report: tokens_used.Report, table: str) -> str:
    of = tokens_used.OfAgent if table == "agents" else tokens_used.OfTool
    names = [field.name for field in dataclasses.fields(of)]
    printed = io.StringIO()
    writer = csv.writer(printed, lineterminator="\n")
    writer.writerow(names)
    for row in getattr(report, table):
        values = (getattr(row, name) for name in names)
        writer.writerow([" ".join(value) if isinstance(value, tuple) else _cell(value) for value in values])
    return printed.getvalue()


def _cell(value: Any) -> Any:
    """Return a value that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def _text(report: tokens_used.Report, days: int) -> Iterator[str]:
    yield from columns.lines(
        [
            (
                "agent",
                "tools",
                "not called",
                "tokens",
                "calls",
                f"tokens sent in {texts.counted(days, 'day')}",
            ),
            *(
                (
                    used.agent,
                    f"{used.tools}",
                    f"{used.unused}",
                    f"{used.tokens}",
                    f"{used.calls}",
                    f"{used.sent}",
                )
                for used in report.agents[:MAX_PRINTED]
            ),
        ]
    )
    yield from _more(len(report.agents))
    yield ""
    idle = report.unused
    if not idle:
        yield f"Every tool that is on was called in {texts.counted(days, 'day')}."
        return
    yield (
        f"{texts.counted(len(idle), 'tool')} on but not called in {texts.counted(days, 'day')},"
        f" {sum(used.wasted for used in idle)} tokens with a request of each agent:"
    )
    yield from columns.lines(
        [
            ("tool", "tokens", "agents", "not called by"),
            *(
                (used.tool, f"{used.tokens}", f"{len(used.unused_by)}", texts.listing(used.unused_by))
                for used in idle[:MAX_PRINTED]
            ),
        ]
    )
    yield from _more(len(idle))


def _more(count: int) -> Iterator[str]:
    if count > MAX_PRINTED:
        yield f"and {count - MAX_PRINTED} more: --json and --csv print all"
