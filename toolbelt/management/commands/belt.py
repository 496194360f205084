"""``manage.py belt export|import|check``: export, import and check the configuration as a file."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.config import belt_effects, belt_texts, belts
from toolbelt.core import errors
from toolbelt.management import belt_preview, files, terminal


class Command(terminal.Command):
    """Export, import or check a belt."""

    help = "Export the configuration as a belt (YAML or JSON), import a belt, or check one without changing anything."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the action and the file."""
        parser.add_argument(
            "act", metavar="ACTION", choices=("export", "import", "check"), help="export, import or check"
        )
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            default="-",
            help="a YAML or JSON file; - for standard input or output",
        )
        parser.add_argument(
            "--confirm", action="store_true", help="import even changes that require confirmation (import)"
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what an import would change, and for which agents",
        )
        parser.add_argument(
            "--replace", action="store_true", help="overwrite a file that exists already (export)"
        )
        parser.add_argument("--reason", default="", help="a reason, for the audit log (import)")

    def handle(self, *args: Any, act: str, file: str, **options: Any) -> None:
        """Run the action. An invalid belt is refused completely, with a line for each problem."""
        if act == "export":
            self._export(file, replace=options["replace"])
            return
        document = _read(file)
        if act == "check":
            problems = belts.check(document)
            if problems:
                raise CommandError(_listed(problems))
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
            raise CommandError(_listed(error.problems)) from error
        self._warn(result.warnings)
        for line in belt_preview.summary(assessment, result):
            self.stdout.write(line)

    def _preview(self, assessment: belt_effects.Assessment) -> None:
        self._warn(assessment.imported.warnings)
        for line in belt_preview.lines(assessment):
            self.stdout.write(line)

    def _warn(self, warnings: Iterable[errors.Problem]) -> None:
        for warning in warnings:
            self.stderr.write(f"Warning: {warning}")

    def _export(self, file: str, *, replace: bool) -> None:
        if file != "-" and not replace and Path(file).exists():
            raise CommandError(
                f"{file} exists already. Choose another name, or add --replace to overwrite it."
            )
        document = belts.export()
        text = belt_texts.write(document, "json" if file.endswith(".json") else "yaml")
        if file == "-":
            self.stdout.write_yaml(text)
            return
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error.strerror}.") from error
        entries = sum(map(len, document.values()))
        self.stdout.write(f"Wrote {file} ({entries} {'entry' if entries == 1 else 'entries'}).")


def _read(file: str) -> dict[str, Any]:
    document = files.read(file)
    if not isinstance(document, dict):
        raise CommandError(
            f"{file}: a belt must be a mapping of plugins, tools, toolkits, loadouts, agents, sub_apps."
        )
    return document


def _listed(problems: Any) -> str:
    return "\n".join(["The belt is not valid:", *(f"  {problem}" for problem in problems)])
