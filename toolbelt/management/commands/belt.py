"""``manage.py belt export|import|check|plan|apply|drift``: the configuration as a file, and as code."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import past, writing
from toolbelt.control.config import belt_decisions, belt_effects, belt_plans, belt_texts, belts, drift
from toolbelt.core import errors, texts
from toolbelt.management import belt_markdown, belt_preview, files, terminal


class Command(terminal.ComparingCommand):
    """Export, import, check, plan or apply a belt."""

    help = (
        "Export the configuration as a belt (YAML or JSON), import a belt, or check one without changing anything; as"
        " code: plan what applying a belt would change, apply it, and see what was changed since (drift)."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the action and the file."""
        parser.add_argument(
            "act",
            metavar="ACTION",
            choices=("export", "import", "check", "plan", "apply", "drift"),
            help="export, import, check, plan, apply or drift",
        )
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            default="-",
            help="a YAML or JSON file; - for standard input or output",
        )
        parser.add_argument(
            "--confirm",
            action="store_true",
            help="make even changes that require confirmation (import, apply)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what an import would change, and for which agents (import)",
        )
        parser.add_argument(
            "--replace", action="store_true", help="overwrite a file that exists already (export)"
        )
        parser.add_argument(
            "--decisions",
            action="store_true",
            help="only what was decided, one thing a line: no texts and schemas that servers, programs and code"
            " state (export)",
        )
        parser.add_argument(
            "--at",
            metavar="CHANGE",
            default="",
            help="as it was after the audit entry with this number, or at this time (export)",
        )
        parser.add_argument("--reason", default="", help="a reason, for the audit log (import, apply)")
        parser.add_argument(
            "--only",
            metavar="SECTIONS",
            default="",
            help="only these sections of the belt, such as agents,toolkits (plan, apply)",
        )
        parser.add_argument(
            "--prune",
            action="store_true",
            help="archive the agents that the belt does not have (plan, apply)",
        )
        parser.add_argument(
            "--markdown", action="store_true", help="print the plan for a comment on a pull request (plan)"
        )

    def handle(self, *args: Any, act: str, file: str, **options: Any) -> None:
        """Run the action. An invalid belt is refused completely, with a line for each problem."""
        if act == "export":
            self._export(file, replace=options["replace"], decisions=options["decisions"], at=options["at"])
            return
        if act == "drift":
            self._drift(file)
            return
        document = files.read_belt(file)
        if act in ("plan", "apply"):
            self._plan_or_apply(act, document, options, name=file)
            return
        if act == "check":
            problems = belts.check(document)
            if problems:
                raise files.invalid(problems)
            self._warn(belts.warnings(document))
            self.stdout.write("The belt is valid.")
            return
        try:
            write = writing.by(getpass.getuser(), via="import", reason=options["reason"])
            assessment = belt_effects.assess(write, document)
            if options["dry_run"]:
                self._preview(assessment)
                return
            result = belts.import_(write.replace(confirm=options["confirm"]), document)
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To import the belt anyway, add --confirm.") from error
        except errors.Invalid as error:
            raise files.invalid(error.problems) from error
        self._warn(result.warnings)
        for line in belt_preview.summary(assessment, result):
            self.stdout.write(line)

    def _drift(self, file: str) -> None:
        """Print what differs from the belt applied last, and exit with 2 if something does."""
        if file != "-":
            raise CommandError(
                f"drift compares with the belt applied last, and takes no file: use `belt plan {file}`."
            )
        found = drift.find()
        if found is None:
            raise CommandError("No belt has been applied: apply one with `belt apply FILE`.")
        self.stdout.write(_applied(found.applied))
        for difference in found.differences:
            at = f" ({difference.at:%Y-%m-%d %H:%M} UTC)" if difference.at else ""
            self.stdout.write(f"  {drift.line(difference)}{at}")
        if found.differences:
            sys.exit(self.DIFFERS)
        self.stdout.write("Nothing differs from it.")

    def _plan_or_apply(
        self, act: str, document: dict[str, Any], options: dict[str, Any], *, name: str
    ) -> None:
        write = writing.by(getpass.getuser(), via="import", reason=options["reason"])
        limits: dict[str, Any] = {
            "only": [name.strip() for name in options["only"].split(",") if name.strip()],
            "prune": options["prune"],
        }
        result: belts.Imported | None = None
        named = drift.STANDARD_INPUT if name == "-" else Path(name).name
        since = drift.find()
        try:
            if act == "apply":
                write = write.replace(confirm=options["confirm"])
                plan, result = belt_plans.apply(write, document, **limits, name=named)
            else:
                plan = belt_plans.plan(write, document, **limits)
        except errors.ConfirmationRequired as error:
            reasons = "".join(f"\n  {reason}" for reason in error.reasons)
            raise CommandError(f"To confirm:{reasons}\nTo apply the belt anyway, add --confirm.") from error
        except errors.Invalid as error:
            raise files.invalid(error.problems) from error
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        self._warn(plan.assessment.imported.warnings)
        if result is not None:
            lines = belt_preview.summary(plan.assessment, result)
        elif options["markdown"]:
            lines = belt_markdown.lines(plan, since)
        else:
            lines = belt_preview.lines(plan.assessment)
        for line in lines:
            self.stdout.write(line)
        if not options["markdown"]:
            for agent in plan.archived:
                verb = "Archived" if act == "apply" else "To be archived"
                self.stdout.write(f"{verb}, because the belt does not have it: {agent}.")
        if act == "plan" and since is not None and since.differences and not options["markdown"]:
            self.stdout.write(f"{_applied(since.applied)} Changed since:")
            for difference in since.differences:
                self.stdout.write(f"  {drift.line(difference)}")
        if act == "plan" and not plan.is_nothing:
            sys.exit(self.DIFFERS)

    def _preview(self, assessment: belt_effects.Assessment) -> None:
        self._warn(assessment.imported.warnings)
        for line in belt_preview.lines(assessment):
            self.stdout.write(line)

    def _warn(self, warnings: Iterable[errors.Problem]) -> None:
        for warning in warnings:
            self.stderr.write(f"Warning: {warning}")

    def _export(self, file: str, *, replace: bool, decisions: bool, at: str) -> None:
        if file != "-" and not replace and Path(file).exists():
            raise CommandError(
                f"{file} exists already. Choose another name, or add --replace to overwrite it."
            )
        form: belt_texts.Form = "json" if file.endswith(".json") else "yaml"
        if at and decisions:
            raise CommandError("--decisions needs what is listed now: leave out --at or --decisions.")
        if at:
            document = self._past(at)
            text = belt_texts.write(document, form)
        elif decisions:
            document = belt_decisions.export()
            text = belt_texts.write_decisions(document, form)
        else:
            document = belts.export()
            text = belt_texts.write(document, form)
        if file == "-":
            self.stdout.write_yaml(text)
            return
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error.strerror}.") from error
        entries = sum(map(len, document.values()))
        self.stdout.write(f"Wrote {file} ({entries} {'entry' if entries == 1 else 'entries'}).")

    def _past(self, at: str) -> dict[str, Any]:
        """Return the belt of a moment, and warn of what is uncertain in it."""
        try:
            was = past.at(past.parse(at, "--at"))
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        for gap in was.history.gaps:
            self.stderr.write(
                f"Uncertain: {gap.field} of {gap.kind} {gap.name} is not as the audit log has it."
            )
        agents = texts.listing(was.history.uncertain_agents)
        uncertain = ["the catalog"] if was.history.is_catalog_uncertain else []
        uncertain += [f"agents {agents}"] if agents else []
        if uncertain:
            self.stderr.write(f"Uncertain: written without the audit log since: {', '.join(uncertain)}.")
        return was.export()


def _applied(belt: drift.Applied) -> str:
    return f"Applied last: {belt.name} ({belt.digest[:12]}), by {belt.actor}, {belt.at:%Y-%m-%d %H:%M} UTC."
