"""``manage.py prove``: what a belt, or an undo, would have done to the calls that are recorded."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import json
import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import drafts, proofs, self_checks, writing
from toolbelt.core import errors, grants
from toolbelt.management import belt_markdown, columns, files, terminal

# How many rows are printed without --json.
MAX_PRINTED = 50


class Command(terminal.ComparingCommand):
    """Prove a change by the calls that are recorded."""

    help = (
        "Print which recorded calls would go otherwise if a belt or a draft was applied, or a change undone. Nothing is"
        " called or written. Exits with 0 if none would, with 2 if some would, and with 1 if there is an error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the change, the period and the form."""
        parser.add_argument("file", metavar="FILE", nargs="?", help="a belt; - for standard input")
        parser.add_argument(
            "--undo", metavar="CHANGE", type=int, help="undo the change with this number, and its batch"
        )
        parser.add_argument("--draft", metavar="DRAFT", help="apply the draft with this key")
        parser.add_argument(
            "--self-check",
            action="store_true",
            help="instead, compare recorded verdicts with their replays, as everything was configured then",
        )
        parser.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=proofs.DAYS,
            help=f"the calls of the last N days (default: {proofs.DAYS})",
        )
        parser.add_argument(
            "--basis",
            choices=proofs.BASES,
            default="now",
            help="decide the calls as everything is configured now, or was then (default: now)",
        )
        parser.add_argument(
            "--only",
            metavar="SECTIONS",
            default="",
            help="only these sections of the belt, such as agents,toolkits",
        )
        parser.add_argument(
            "--prune", action="store_true", help="archive the agents that the belt does not have"
        )
        parser.add_argument(
            "--coverage",
            metavar="PERCENT",
            type=float,
            default=0.0,
            help="exit with 1 if less of the calls could be replayed",
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print JSON")
        form.add_argument("--markdown", action="store_true", help="print a comment on a pull request")

    def handle(self, *args: Any, file: str | None, **options: Any) -> None:
        """Print the proof."""
        if options["self_check"]:
            self._check(file, options)
            return
        proof = _prove(file, options)
        if options["json"]:
            self.stdout.write_json(json.dumps(proofs.document(proof), indent=2, ensure_ascii=False) + "\n")
        else:
            lines = belt_markdown.proof_lines if options["markdown"] else _lines
            self.stdout.write("\n".join(lines(proof)))
        if proof.coverage * 100 < options["coverage"]:
            raise CommandError(
                f"Not proven: {proof.coverage:.1%} of the calls could be replayed, less than {options['coverage']:g} %."
            )
        if not proof.is_nothing:
            sys.exit(self.DIFFERS)

    def _check(self, file: str | None, options: dict[str, Any]) -> None:
        """Print how many verdicts the replays reproduce; exit with 2 if they do not reproduce all."""
        if file is not None or options["undo"] is not None or options["draft"] is not None:
            raise CommandError("--self-check proves no change: leave out the belt, --undo and --draft.")
        checked = self_checks.check(days=options["days"])
        if options["json"]:
            document = {**dataclasses.asdict(checked), "at": grants.format_time(checked.at)}
            self.stdout.write_json(json.dumps(document, indent=2) + "\n")
        else:
            self.stdout.write(checked.sentence)
            for call in checked.mismatches:
                self.stdout.write(f"  decided otherwise: call {call}")
        if checked.mismatches:
            sys.exit(self.DIFFERS)


def _prove(file: str | None, options: dict[str, Any]) -> proofs.Proof:
    if [file, options["undo"], options["draft"]].count(None) != 2:
        raise CommandError("Name one of these: a belt, --undo CHANGE, or --draft DRAFT.")
    write, days = writing.by(getpass.getuser(), via="import"), options["days"]
    basis: proofs.Basis = options["basis"]
    try:
        if options["draft"] is not None:
            return drafts.prove(write, options["draft"], days=days, basis=basis)
        if file is None:
            return proofs.of_undo(write, options["undo"], days=days, basis=basis)
        only = [name.strip() for name in options["only"].split(",") if name.strip()]
        belt = files.read_belt(file)
        return proofs.of_belt(write, belt, only=only, prune=options["prune"], days=days, basis=basis)
    except errors.Invalid as error:
        raise files.invalid(error.problems) if file is not None else CommandError(str(error)) from error
    except errors.ToolbeltError as error:
        raise CommandError(str(error)) from error


def _lines(proof: proofs.Proof) -> Iterator[str]:
    yield proof.sentence
    yield proof.coverage_sentence
    for tool, names in proof.fields.items():
        yield f"  {tool}: record {', '.join(names)} from now on."
    if not proof.rows:
        return
    yield proofs.MEANINGS[proof.basis]
    yield proofs.CAVEAT
    yield ""
    yield from columns.lines(
        [
            (
                "agent",
                "tool",
                "today" if proof.basis == "now" else "then",
                "with the change",
                "calls",
                "ran",
                "sessions",
                "because",
            ),
            *(
                (
                    row.agent,
                    row.tool,
                    proofs.WORDS[row.before],
                    proofs.WORDS[row.after],
                    f"{row.calls:,}",
                    f"{row.ran:,}",
                    f"{len(row.sessions):,}",
                    row.words,
                )
                for row in proof.rows[:MAX_PRINTED]
            ),
        ]
    )
    if len(proof.rows) > MAX_PRINTED:
        yield f"and {len(proof.rows) - MAX_PRINTED:,} more"
